// Files that appear whole or not at all: text goes to a temporary file beside the target, reaches the disk,
// and takes the target's name in one rename. A reader never sees half a result, whatever stops the writer.
//
// A symbolic link keeps pointing where it does; what it names is replaced. Devices and pipes (/dev/stdout) are
// written directly, they have no "before" to keep.
#pragma once

#include <string>
#include <string_view>

namespace fabricast {

/// Throws ScenarioError ("cannot write out/result.json: ...") and leaves an existing target as it was.
void write_file_atomically(const std::string& path, std::string_view text);

/// Throws ScenarioError if the file could not be created now: to be told before a long simulation, not after.
void check_writable(const std::string& path);

}  // namespace fabricast
