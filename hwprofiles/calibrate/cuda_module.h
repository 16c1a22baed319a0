// The GPU module: a separate shared object (libspillway_cuda), loaded when asked for, so that one program runs with and
// without CUDA.
#pragma once

namespace spillway::hwprofiles {

// A function of the module by name. Looks in $SPILLWAY_CUDA_MODULE, the build folder, lib/spillway of the
// program's prefix; what the module needs of CUDA is found as cuda_libraries.h says. Throws
// InputError: built without CUDA; the module or a library it needs is not found.
void* cuda_module_function(const char* name);

// Whether there is a module to ask: the build made it, or SPILLWAY_CUDA_MODULE names one.
bool has_cuda_module();

}  // namespace spillway::hwprofiles
