# Cross build for -DPTT_PROCESSOR=aarch64 or riscv64 with Debian's compiler. Programs and tests run under qemu-user.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES PTT_PROCESSOR)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${PTT_PROCESSOR})
set(CMAKE_C_COMPILER ${PTT_PROCESSOR}-linux-gnu-gcc)
# The name differs between releases.
find_program(PTT_QEMU NAMES qemu-${PTT_PROCESSOR}-static qemu-${PTT_PROCESSOR})
set(CMAKE_CROSSCOMPILING_EMULATOR ${PTT_QEMU} -L /usr/${PTT_PROCESSOR}-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
