// A program that behaves as one that uses CUDA does when it is recorded: the driver's part is played by itself.
//   cuda_stand_in [die]     die: killed before it ends
#include <dlfcn.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int count, char** arguments) {
  const char* injection = std::getenv("CUDA_INJECTION64_PATH");
  if (injection == nullptr) return 3;
  void* library = dlopen(injection, RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 4;
  }
  const auto begin = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  if (begin == nullptr) return 5;
  begin();
  if (count > 1 && std::strcmp(arguments[1], "die") == 0) kill(getpid(), SIGKILL);
  return 0;
}
