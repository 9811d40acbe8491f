// The library that is missing where the test puts the module needing.cpp.
extern "C" int fabricast_needed() { return 1; }
