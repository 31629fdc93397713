// Type (0 float, 1 bf16, 2 half), head dimension, query rows per block: those that the tests execute.
CASE(0, float, 64, 3) CASE(0, float, 64, 4) CASE(1, bf16, 128, 3) CASE(1, bf16, 96, 4)
#ifndef FEW
CASE(0, float, 64, 1) CASE(0, float, 96, 2) CASE(0, float, 128, 4) CASE(0, float, 256, 1)
CASE(1, bf16, 64, 3) CASE(1, bf16, 128, 4) CASE(1, bf16, 256, 2)
CASE(2, half16, 64, 2) CASE(2, half16, 96, 3) CASE(2, half16, 128, 4)
#endif
