// A module as it is where NCCL is not installed: the loader does not find what it is linked to.
extern "C" int fabricast_needed();

extern "C" const void* fabricast_cuda_module() { return fabricast_needed() == 0 ? "" : nullptr; }
