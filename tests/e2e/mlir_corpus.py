"""Kernels in MLIR with every construct that is read, planned and then run.

usage: mlir_corpus.py TOOL FOLDER [FIRST LAST]

Functions are made from seeds as lists of operations, printed, and planned by TOOL. What they do
is then executed here, along random branches, in a memory that has the planned addresses: every
execution of an allocation is a buffer of its own that knows what was last written to it, and a
read fails where the memory holds anything else. Nothing of the planner's lifetimes is used.
"""

import json
import random
import re
import subprocess
import sys

SIZES = (256, 512, 1024)  # elements of f16
GRANULE = 32
REFUSALS = ("leads out of its region",)


def ub(n):
    return f"memref<{n}xf16, #hivm.address_space<ub>>"


def gm(n):
    return f"memref<{n}xf16, #hivm.address_space<gm>>"


class Maker:
    """One function from a seed. `live`: names that hold something, with their sizes."""

    def __init__(self, seed):
        self.rnd = random.Random(seed)
        self.seed, self.n = seed, 0
        self.functions = []  # texts of vector functions

    def name(self, prefix):
        self.n += 1
        return f"{prefix}{self.n}"

    def pick(self, live, size=None):
        fit = [x for x, n in live.items() if size in (None, n)]
        return self.rnd.choice(fit) if fit else None

    def fresh(self, live, body):
        """A buffer that is loaded."""
        x, n = self.name("a"), self.rnd.choice(SIZES)
        body += [("alloc", x, n, self.rnd.choice((1, 1, 1, 2))), ("load", x, n)]
        live[x] = n
        return x

    def compute(self, live, body):
        a = self.pick(live)
        n = live[a]
        b = self.pick(live, n)
        out = self.name("t")
        body.append(("alloc", out, n, 1))
        kind = self.rnd.choice(("vadd", "vmul", "vexp", "vtranspose", "copy"))
        body.append(("op", kind, [a, b] if kind in ("vadd", "vmul") else [a], out, n))
        live[out] = n
        return out

    def step(self, live, body, depth):
        kinds = ["fresh", "compute", "compute", "store", "view", "select", "call", "element", "vf", "vf"]
        if depth < 3:
            kinds += ["if", "if_result", "for", "for_carry", "while", "scope"]
        getattr(self, "do_" + self.rnd.choice(kinds))(live, body, depth)

    def do_fresh(self, live, body, depth):
        self.fresh(live, body)

    def do_compute(self, live, body, depth):
        self.compute(live, body)

    def do_store(self, live, body, depth):
        a = self.pick(live)
        body.append(("store", a, live[a]))

    def do_view(self, live, body, depth):
        a, v = self.pick(live), self.name("v")
        body.append(("view", v, a, live[a]))
        live[v] = live[a]

    def do_select(self, live, body, depth):
        a = self.pick(live)
        b, s = self.pick(live, live[a]), self.name("s")
        body.append(("select", s, a, b, live[a]))
        live[s] = live[a]

    def do_call(self, live, body, depth):
        a = self.pick(live)
        body.append(("call", a, live[a]))

    def do_element(self, live, body, depth):
        a, b = self.pick(live), self.pick(live)
        body.append(("element", a, live[a], b, live[b], self.name("e")))

    def do_vf(self, live, body, depth):
        """A vector function: nests of (rounds, step, accesses), an access is (writes, argument, width), in granules."""
        a = self.pick(live)
        n = live[a]
        outs = [self.name("y") for _ in range(self.rnd.choice((1, 1, 2)))]
        args = self.rnd.sample([a, *outs], 1 + len(outs))
        if self.rnd.random() < 0.7:  # each element from its own, but for what may be wrong with that
            step = self.rnd.choice((1, 4))
            reads, writes = [(False, args.index(a), step)], [(True, args.index(y), step) for y in outs]
            wrong = self.rnd.choice(("", "", "again", "later", "before", "wide"))
            nests = [(2 if wrong == "again" else 1, step, writes + reads if wrong == "before" else reads + writes)]
            if wrong == "wide":
                nests[0][2].insert(0, (False, args.index(a), 2 * step))
                nests.append((1, step, writes))
            if wrong == "later":
                nests = nests + nests
            if self.rnd.random() < 0.7:
                del live[a]
        else:
            nests = [self.nest(len(args)) for _ in range(self.rnd.choice((1, 1, 2)))]
        name = f"vf{self.seed}_{len(self.functions)}"
        self.functions.append(vector_text(name, nests, len(args), n))
        body += [("alloc", y, n, 1) for y in outs] + [("vf", name, args, nests, n)]
        for y in outs:
            if any(writes and args[k] == y for _, _, accesses in nests for writes, k, _ in accesses):
                live[y] = n

    def nest(self, n_args):
        step = self.rnd.choice((1, 2, 4))
        return (self.rnd.choice((1, 1, 2)), step,
                [(self.rnd.random() < 0.5, self.rnd.randrange(n_args), self.rnd.choice((step, step, step, 2 * step)))
                 for _ in range(self.rnd.randint(1, 4))])

    def inner(self, live, depth, end=None):
        """A region's operations, with the name of size `end` that it hands on."""
        own, body = dict(live), []
        for _ in range(self.rnd.randint(1, 4)):
            self.step(own, body, depth + 1)
        if end is None:
            return body, None
        last = self.name("t")
        body += [("alloc", last, end, 1), ("op", "vexp", [self.pick(own, end)], last, end)]
        return body, last

    def do_if(self, live, body, depth):
        then, _ = self.inner(live, depth)
        other = self.inner(live, depth)[0] if self.rnd.random() < 0.5 else None
        body.append(("if", None, then, None, other, None, 0))

    def do_if_result(self, live, body, depth):
        n = live[self.pick(live)]
        then, a = self.inner(live, depth, n)
        other, b = self.inner(live, depth, n)
        if self.rnd.random() < 0.3:
            b = self.pick(live, n)  # what was there before
        r = self.name("r")
        body.append(("if", r, then, a, other, b, n))
        live[r] = n

    def do_for(self, live, body, depth):
        body.append(("for", None, None, None, self.inner(live, depth)[0], None, 0))

    def carried(self, live, body):
        init = self.compute(live, body)
        n = live.pop(init)  # only the loop has it
        return init, n

    def do_for_carry(self, live, body, depth):
        init, n = self.carried(live, body)
        arg, r = self.name("c"), self.name("r")
        inside, last = self.inner({**live, arg: n}, depth, n)
        body.append(("for", r, arg, init, inside, last, n))
        live[r] = n

    def do_while(self, live, body, depth):
        init, n = self.carried(live, body)
        arg, do, r = self.name("c"), self.name("d"), self.name("r")
        inside, last = self.inner({**live, do: n}, depth, n)
        body.append(("while", r, arg, do, init, inside, last, n))
        live[r] = n

    def do_scope(self, live, body, depth):
        n = live[self.pick(live)]
        inside, last = self.inner(live, depth, n)
        r = self.name("r")
        body.append(("scope", r, inside, last, n))
        live[r] = n

    def block(self, live, label, args):
        own, body = dict(live), []
        for _ in range(self.rnd.randint(1, 4)):
            self.step(own, body, 2)
        return [label, args, body, None], own

    def structured(self):
        live, body = {}, []
        self.fresh(live, body)
        for _ in range(self.rnd.randint(4, 12)):
            self.step(live, body, 0)
        for x in list(live)[-2:]:
            body.append(("store", x, live[x]))
        return [["", [], body, ("return",)]]

    def branching(self):
        """entry -> loop? -> left or right or neither -> join"""
        live = {}
        entry, own = self.block_entry()
        n = own[x := self.pick(own)]
        blocks = [entry]
        target = "left"
        if self.rnd.random() < 0.5:
            loop, inside = self.block(own, "loop", [("p", n)])
            loop[2].append(("store", "p", n))
            loop[3] = ("cond", ("loop", ["p"]), ("fork", []))
            fork, _ = self.block(own, "fork", [])
            entry[3] = ("br", ("loop", [x]))
            blocks += [loop, fork]
            last = fork
        else:
            last = entry
        target = self.rnd.choice(("right", "join"))
        y = self.pick(own, n)
        last[3] = ("cond", ("left", [x]), (target, [y]))
        for label, value in (("left", "q"), ("right", "u")):
            if label == "right" and target == "join":
                continue
            b, inside = self.block({**own, value: n}, label, [(value, n)])
            b[2] += [("alloc", "z" + value, n, 1), ("op", "vadd", [value, y], "z" + value, n)]
            b[3] = ("br", ("join", ["z" + value]))
            blocks.append(b)
        join, inside = self.block({**own, "w": n}, "join", [("w", n)])
        join[2].append(("store", "w", n))
        join[3] = ("return",)
        return blocks + [join]

    def block_entry(self):
        live, body = {}, []
        self.fresh(live, body)
        self.fresh(live, body)
        for _ in range(self.rnd.randint(1, 4)):
            self.step(live, body, 2)
        return ["", [], body, None], live


# ---- as text ----


def starts(nest, n):
    """First granules of a nest's iterations."""
    _, step, accesses = nest
    widest = max(width for _, _, width in accesses)
    return range(0, 2 * n // GRANULE - widest + 1, step)


def vector_text(name, nests, n_args, n):
    args = ", ".join(f"%x{k}: {ub(n)}" for k in range(n_args))
    lines = [f"func.func @{name}({args}) attributes {{hivm.vector_function, no_inline}} {{",
             "  %zero = arith.constant 0 : index", "  %one = arith.constant 1 : index", "  %two = arith.constant 2 : index",
             "  %pad = arith.constant 0.000000e+00 : f16"]
    for m, nest in enumerate(nests):
        rounds, step, accesses = nest
        one = GRANULE // 2
        lines += [f"  %end{m} = arith.constant {starts(nest, n).stop * one} : index",
                  f"  %step{m} = arith.constant {step * one} : index",
                  f"  scf.for %r{m} = %zero to %{'two' if rounds == 2 else 'one'} step %one {{",
                  f"    scf.for %i{m} = %zero to %end{m} step %step{m} {{"]
        value = None
        for k, (writes, arg, width) in enumerate(accesses):
            w, v, s = width * one, f"%v{m}_{k}", f"%s{m}_{k}"
            part = f"memref<{w}xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>"
            lines.append(f"      {s} = memref.subview %x{arg}[%i{m}] [{w}] [1] : {ub(n)} to {part}")
            if not writes:
                lines.append(f"      {v} = vector.transfer_read {s}[%zero], %pad {{in_bounds = [true]}} : {part}, vector<{w}xf16>")
                value = v
                continue
            if value is None:
                value = "%pad"
            lines.append(f"      vector.transfer_write {value}, {s}[%zero] {{in_bounds = [true]}} : vector<{w}xf16>, {part}")
        lines += ["    }", "  }"]
    return "\n".join(lines + ["  return", "}", ""])


def text_of(op, pad):
    kind = op[0]
    if kind == "alloc":
        _, x, n, slots = op
        lines = [f"%{x} = memref.alloc() : {ub(n)}"]
        if slots > 1:
            lines.append(f"annotation.mark %{x} {{hivm.multi_buffer = {slots} : i32}} : {ub(n)}")
        return [pad + line for line in lines]
    if kind == "load":
        return [f"{pad}hivm.hir.load ins(%g{op[2]} : {gm(op[2])}) outs(%{op[1]} : {ub(op[2])})"]
    if kind == "store":
        return [f"{pad}hivm.hir.store ins(%{op[1]} : {ub(op[2])}) outs(%g{op[2]} : {gm(op[2])})"]
    if kind == "op":
        _, name, ins, out, n = op
        names = ", ".join("%" + x for x in ins)
        return [f"{pad}hivm.hir.{name} ins({names} : {', '.join([ub(n)] * len(ins))}) "
                f"outs(%{out} : {ub(n)})"]
    if kind == "view":
        return [f"{pad}%{op[1]} = memref.cast %{op[2]} : {ub(op[3])} to {ub(op[3])}"]
    if kind == "select":
        return [f"{pad}%{op[1]} = arith.select %flag, %{op[2]}, %{op[3]} : {ub(op[4])}"]
    if kind == "call":
        return [f"{pad}func.call @outside{op[2]}(%{op[1]}) {{no_inline}} : ({ub(op[2])}) -> ()"]
    if kind == "vf":
        _, name, args, _, n = op
        types = ", ".join([ub(n)] * len(args))
        return [f"{pad}func.call @{name}({', '.join('%' + a for a in args)}) {{hivm.vector_function, no_inline}} : ({types}) -> ()"]
    if kind == "element":
        _, a, n, b, m, e = op
        return [f"{pad}%{e} = memref.load %{a}[%zero] : {ub(n)}",
                f"{pad}memref.store %{e}, %{b}[%zero] : {ub(m)}"]
    if kind == "if":
        return text_of_if(op, pad)
    if kind == "scope":
        _, r, body, last, n = op
        return ([f"{pad}%{r} = scope.scope : () -> ({ub(n)}) {{"] + texts(body, pad + "  ") +
                [f"{pad}  scope.return %{last} : {ub(n)}", pad + "} {no_inline}"])
    return text_of_loop(op, pad)


def text_of_if(op, pad):
    _, r, then, a, other, b, n = op
    head = f"%{r} = scf.if %flag -> ({ub(n)})" if r else "scf.if %flag"
    lines = [f"{pad}{head} {{"] + texts(then, pad + "  ")
    if r:
        lines.append(f"{pad}  scf.yield %{a} : {ub(n)}")
    if other is not None:
        lines += [pad + "} else {"] + texts(other, pad + "  ")
        if r:
            lines.append(f"{pad}  scf.yield %{b} : {ub(n)}")
    return lines + [pad + "}"]


def text_of_loop(op, pad):
    if op[0] == "for":
        _, r, arg, init, body, last, n = op
        head = f"scf.for %i{len(pad)} = %zero to %many step %one"
        if r:
            head = f"%{r} = {head} iter_args(%{arg} = %{init}) -> ({ub(n)})"
        lines = [f"{pad}{head} {{"] + texts(body, pad + "  ")
    else:
        _, r, arg, do, init, body, last, n = op
        lines = [f"{pad}%{r} = scf.while (%{arg} = %{init}) : ({ub(n)}) -> {ub(n)} {{",
                 f"{pad}  scf.condition(%flag) %{arg} : {ub(n)}", pad + "} do {",
                 f"{pad}^bb0(%{do}: {ub(n)}):"] + texts(body, pad + "  ")
    if r:
        lines.append(f"{pad}  scf.yield %{last} : {ub(n)}")
    return lines + [pad + "}"]


def texts(body, pad):
    return [line for op in body for line in text_of(op, pad)]


def size_in(blocks, label, k):
    return next(b for b in blocks if b[0] == label)[1][k][1]


def successor(blocks, to):
    label, args = to
    if not args:
        return "^" + label
    types = ", ".join(ub(size_in(blocks, label, k)) for k in range(len(args)))
    return f"^{label}({', '.join('%' + a for a in args)} : {types})"


def function_text(name, blocks):
    args = ", ".join(f"%g{n}: {gm(n)}" for n in SIZES)
    lines = [f"func.func @{name}({args}, %flag: i1) {{", "  %zero = arith.constant 0 : index",
             "  %one = arith.constant 1 : index", "  %many = arith.constant 5 : index"]
    for label, args, body, end in blocks:
        if label:
            shown = ", ".join(f"%{a}: {ub(n)}" for a, n in args)
            lines.append(f"^{label}({shown}):" if args else f"^{label}:")
        lines += texts(body, "  ")
        if end[0] == "br":
            lines.append("  cf.br " + successor(blocks, end[1]))
        elif end[0] == "cond":
            lines.append(f"  cf.cond_br %flag, {successor(blocks, end[1])}, "
                         f"{successor(blocks, end[2])}")
        else:
            lines.append("  return")
    return "\n".join(lines + ["}", ""])


# ---- executed ----


class Buffer:
    """One execution of an allocation."""

    def __init__(self, at, n):
        self.at = at
        self.holds = [None] * (2 * n // GRANULE)


class Clobbered(Exception):
    pass


class Machine:
    def __init__(self, addresses, rnd):
        self.addresses, self.rnd = addresses, rnd
        self.memory, self.turn, self.clock, self.steps = {}, {}, 0, 0

    def write(self, b, only=None):
        self.clock += 1
        for k in range(len(b.holds)) if only is None else only:
            b.holds[k] = self.clock
            self.memory[b.at // GRANULE + k] = self.clock

    def read(self, b, what, only=None):
        for k in range(len(b.holds)) if only is None else only:
            if b.holds[k] is not None and self.memory.get(b.at // GRANULE + k) != b.holds[k]:
                raise Clobbered(f"{what}: byte {b.at + k * GRANULE} was overwritten")

    def run(self, body, env):
        for op in body:
            self.steps += 1
            getattr(self, "on_" + op[0])(op, env)

    def on_alloc(self, op, env):
        places = self.addresses[op[1]]
        turn = self.turn[op[1]] = self.turn.get(op[1], -1) + 1
        env[op[1]] = Buffer(places[turn % len(places)], op[2])

    def on_load(self, op, env):
        self.write(env[op[1]])

    def on_store(self, op, env):
        self.read(env[op[1]], op)

    def on_op(self, op, env):
        for x in op[2]:
            self.read(env[x], op)
        self.write(env[op[3]])

    def on_view(self, op, env):
        env[op[1]] = env[op[2]]

    def on_select(self, op, env):
        env[op[1]] = env[self.rnd.choice(op[2:4])]

    def on_call(self, op, env):
        self.read(env[op[1]], op)
        self.write(env[op[1]], [0])

    def on_vf(self, op, env):
        _, _, args, nests, n = op
        for nest in nests:
            for _ in range(nest[0]):
                for i in starts(nest, n):
                    for writes, k, width in nest[2]:
                        only = range(i, i + width)
                        if writes:
                            self.write(env[args[k]], only)
                        else:
                            self.read(env[args[k]], op, only)

    def on_element(self, op, env):
        self.read(env[op[1]], op, [0])
        self.write(env[op[3]], [0])

    def on_if(self, op, env):
        _, r, then, a, other, b, _ = op
        own = dict(env)
        first = self.rnd.random() < 0.5
        self.run(then if first else other or [], own)
        if r:
            env[r] = own[a if first else b]

    def on_for(self, op, env):
        _, r, arg, init, body, last, _ = op
        value = env.get(init)
        for _ in range(5):
            own = {**env, arg: value}
            self.run(body, own)
            value = own.get(last)
        if r:
            env[r] = value

    def on_while(self, op, env):
        _, r, arg, do, init, body, last, _ = op
        value = env[init]
        while self.rnd.random() < 0.6:
            own = {**env, do: value}
            self.run(body, own)
            value = own[last]
        env[r] = value

    def on_scope(self, op, env):
        own = dict(env)
        self.run(op[2], own)
        env[op[1]] = own[op[3]]

    def function(self, blocks):
        env, at, passed = {}, blocks[0], []
        while True:
            env.update({x: v for (x, _), v in zip(at[1], passed)})
            self.run(at[2], env)
            if at[3][0] == "return":
                return
            label, args = self.rnd.choice(at[3][1:])
            passed = [env[a] for a in args]
            at = next(b for b in blocks if b[0] == label)


def addresses_of(text):
    number = {m[1]: int(m[2]) for m in re.finditer(r"%(\S+) = arith.constant (\d+) : i64", text)}
    return {m[1]: [number[c.strip().lstrip("%")] for c in m[2].split(",")]
            for m in re.finditer(r"%(\S+) = hivm.hir.pointer_cast\(([^)]*)\)", text)}


def main():
    tool, folder = sys.argv[1:3]
    first, last = map(int, sys.argv[3:5]) if len(sys.argv) > 4 else (0, 80)
    planned = refused = steps = runs = 0
    declared = "".join(f"func.func private @outside{n}({ub(n)})\n" for n in SIZES)
    kept = []
    for seed in range(first, last):
        maker = Maker(seed)
        blocks = maker.branching() if seed % 4 == 3 else maker.structured()
        path = f"{folder}/k{seed}.mlir"
        with open(path, "w", encoding="utf-8") as f:
            f.write(declared + function_text(f"k{seed}", blocks) + "".join(maker.functions))
        mode = ("auto", "reuse", "search")[seed % 3]
        done = subprocess.run([tool, "plan-memory", path, "-q", "-o", f"{folder}/p{seed}.mlir",
                               "--mode", mode], capture_output=True, text=True, check=False)
        if done.returncode == 1 and any(rule in done.stderr for rule in REFUSALS):
            refused += 1
            continue
        if done.returncode:
            sys.exit(f"k{seed}: exit {done.returncode}: {done.stderr}")
        with open(f"{folder}/p{seed}.mlir", encoding="utf-8") as f:
            addresses = addresses_of(f.read())
        for run in range(30):
            machine = Machine(addresses, random.Random(1000 * seed + run))
            try:
                machine.function(blocks)
            except Clobbered as what:
                sys.exit(f"k{seed}, run {run}: {what}")
            steps += machine.steps
            runs += 1
        planned += 1
        kept.append((seed, blocks, maker.functions))
    whole = f"{folder}/all.mlir"
    with open(whole, "w", encoding="utf-8") as f:
        f.write(declared)
        for seed, blocks, functions in kept:
            f.write(function_text(f"k{seed}", blocks) + "".join(functions))
    out = subprocess.run([tool, "plan-memory", whole, "--json", "-o", f"{folder}/out.mlir"],
                         capture_output=True, text=True, check=True).stdout
    functions = json.loads(out)["functions"] if planned > 1 else [json.loads(out)]
    if [f["kernel"] for f in functions] != [f"k{s}" for s, _, _ in kept]:
        sys.exit("functions of one file: not all, or in another order")
    single = sum(open(f"{folder}/p{s}.mlir", encoding="utf-8").read().count("pointer_cast")
                 for s, _, _ in kept)
    if open(f"{folder}/out.mlir", encoding="utf-8").read().count("pointer_cast") != single:
        sys.exit("functions of one file: other casts than one by one")
    print(f"{planned} planned, {refused} refused; {runs} runs, {steps} operations, none clobbered")
    if planned < 0.95 * (last - first):
        sys.exit("too many are refused")


main()
