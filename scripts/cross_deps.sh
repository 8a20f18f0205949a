#!/usr/bin/env bash
# libxml2 and protobuf-c for a platform without packages, from Debian's source packages: cross_deps.sh windows|wasm FOLDER (scripts/cross.sh).
#
#   FOLDER/source   as `apt-get source` has it, of the Debian that this is
#   FOLDER/root     include/, lib/*.a: archives alone, so that the program is one file
#
# libxml2 has what XML reports and targets need: no compression, no network, no iconv, no ICU.
set -eu
case ${1:-} in
windows) host=x86_64-w64-mingw32 cc=$host-gcc ar=$host-ar ranlib=$host-ranlib threads=native ;;
wasm) host=wasm32-unknown-none cc=emcc ar=emar ranlib=emranlib threads=no ;;
*) echo "usage: scripts/cross_deps.sh windows|wasm FOLDER" >&2; exit 2 ;;
esac
folder=$(realpath -m "${2:?folder}")
root=$folder/root
[ -f "$root/.done" ] && exit 0
mkdir -p "$folder/source/lists" "$root/lib"
cd "$folder/source"
. /etc/os-release
echo "deb-src http://deb.debian.org/debian $VERSION_CODENAME main" >sources.list
apt=(apt-get -qq -o Dir::Etc::SourceList="$PWD/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$PWD/lists")
"${apt[@]}" update
"${apt[@]}" source libxml2 protobuf-c >"$folder/source.log" 2>&1 || { tail -n 20 "$folder/source.log" >&2; exit 1; }

rm -rf "$folder/xml" && mkdir "$folder/xml" && cd "$folder/xml"
off=(ACLOCAL=: AUTOMAKE=: AUTOCONF=: AUTOHEADER=:) # patches are newer than what these made: nothing is made anew
{
    "$folder"/source/libxml2-*/configure --host=$host --prefix="$root" --disable-shared --enable-static --without-python --without-zlib --without-lzma \
        --without-icu --without-iconv --without-http --without-ftp --without-debug --with-threads=$threads CC=$cc AR=$ar RANLIB=$ranlib CFLAGS=-O2 "${off[@]}" &&
        make -j"${JOBS:-2}" "${off[@]}" libxml2.la && make "${off[@]}" install-libLTLIBRARIES && make -C include "${off[@]}" install
} >"$folder/xml.log" 2>&1 || { tail -n 20 "$folder/xml.log" >&2; exit 1; }

cd "$folder"/source/protobuf-c-*/
$cc -O2 -I. -c protobuf-c/protobuf-c.c -o "$folder/protobuf-c.o"
$ar rcs "$root/lib/libprotobuf-c.a" "$folder/protobuf-c.o"
mkdir -p "$root/include/protobuf-c"
cp protobuf-c/protobuf-c.h "$root/include/protobuf-c/"
touch "$root/.done"
