// A CUDA driver that is too old for the toolkit, for gpu_absent_test.py.
extern "C" int cuDriverGetVersion(int* version) {
  *version = 10020;
  return 0;
}
extern "C" int cuInit(unsigned) { return 0; }
