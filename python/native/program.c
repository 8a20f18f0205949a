/* The onnx-tile program of the wheel: the library next to it holds everything, so that the wheel
 * has it once. */
int onnx_tile_main(int argc, char **argv); /* src/commands/main.c */

int main(int argc, char **argv) { return onnx_tile_main(argc, argv); }
