"""What to do about what was found, by the key under which the tables in envkit/data name it."""

from __future__ import annotations

from collections.abc import Callable

from envkit.messages import _

__all__ = ["REMEDIES", "remedy"]

REMEDIES: dict[str, Callable[[], str]] = {
    # shared memory
    "shm-small": lambda: _(
        "give /dev/shm more room: docker run --shm-size=1g (compose: shm_size: 1g), on Kubernetes an emptyDir"
        " with medium: Memory mounted on /dev/shm, elsewhere: sudo mount -o remount,size=1g /dev/shm;"
        " or lower num_workers, prefetch_factor or the batch size"
    ),
    "shm-closed": lambda: _(
        "/dev/shm must be a writable tmpfs with mode 1777: docker run --tmpfs /dev/shm:rw,mode=1777,size=1g,"
        " elsewhere: sudo mount -o remount,rw,mode=1777 /dev/shm"
    ),
    "out-of-memory": lambda: _(
        "raise the memory limit (docker run --memory, Kubernetes resources.limits.memory, Slurm --mem),"
        " or lower num_workers and prefetch_factor; shared memory counts against that limit too"
    ),
    # limits
    "descriptors": lambda: _(
        "raise the limit: ulimit -n 65535 (docker run --ulimit nofile=65535, systemd: LimitNOFILE=65535)"
    ),
    "file-size": lambda: _("lift the limit on file size: ulimit -f unlimited"),
    "processes": lambda: _(
        "allow more processes (ulimit -u, docker run --pids-limit, Kubernetes podPidsLimit), or use"
        " fewer workers"
    ),
    # temporary folder
    "tmpdir-long": lambda: _("use a shorter folder: export TMPDIR=/tmp/$USER; mkdir -p $TMPDIR"),
    "tmpdir-none": lambda: _(
        "point TMPDIR at a folder that you may write to and that has room: export TMPDIR=$HOME/tmp"
    ),
    "disk-full": lambda: _("free some space there (df -h), or point TMPDIR at another file system"),
    # libraries
    "no-torch": lambda: _(
        "install torch there, or validate the environment that has it: envkit validate NAME"
    ),
    "old-libstdcxx": lambda: _(
        "an older libstdc++ is found first: unset LD_LIBRARY_PATH, or add libstdcxx-ng to the environment"
    ),
    "old-glibc": lambda: _(
        "this system's C library is too old for that build: choose a conda-forge variant (glibc 2.17 or"
        " newer) or an older torch"
    ),
    "mkl-too-new": lambda: _('this torch needs an older MKL: pin "mkl<2024.1" and make the lock again'),
    "mixed-cuda": lambda: _(
        "CUDA libraries of two versions are mixed: unset LD_LIBRARY_PATH, and keep conda's or pip's, not both"
    ),
    "numpy-major": lambda: _('this torch was built for NumPy 1: pin "numpy<2" and make the lock again'),
    "missing-library": lambda: _(
        "a library that torch needs is not there: `envkit drift NAME --repair` makes the environment again;"
        " LD_LIBRARY_PATH should be unset"
    ),
    "cpu-build": lambda: _(
        "a CPU build was installed: ask for CUDA (`envkit up --cuda 12.4`); when solving on a machine without"
        " a GPU set CONDA_OVERRIDE_CUDA"
    ),
    # driver and devices
    "no-driver": lambda: _(
        "no NVIDIA driver is found: run on a GPU node; in a container, start it with --gpus all"
    ),
    "driver-library": lambda: _(
        "the GPU is there but the driver's libcuda.so.1 is not: start the container with --gpus all and"
        " NVIDIA_DRIVER_CAPABILITIES=compute,utility; elsewhere run: sudo ldconfig"
    ),
    "driver-too-old": lambda: _(
        "install a newer driver, or an environment for an older CUDA: `envkit up --cuda auto` picks one that"
        " fits"
    ),
    "stub-driver": lambda: _("the toolkit's lib/stubs is on LD_LIBRARY_PATH: take it out"),
    "driver-mismatch": lambda: _(
        "the driver was updated under a running kernel module: reboot (or reload the nvidia modules), and"
        " take stale libcuda or cuda-compat folders out of LD_LIBRARY_PATH"
    ),
    "forward-compat": lambda: _(
        "a cuda-compat libcuda is found before the driver's: take its folder out of LD_LIBRARY_PATH and"
        " /etc/ld.so.conf.d, or uninstall the cuda-compat package"
    ),
    "fabric-manager": lambda: _(
        "start the fabric manager of the driver's own version: sudo systemctl start nvidia-fabricmanager"
    ),
    "uvm": lambda: _(
        "reload the unified memory module: sudo modprobe -r nvidia_uvm; sudo modprobe nvidia_uvm"
        " (its device node: sudo nvidia-modprobe -u -c=0)"
    ),
    "init-failed": lambda: _(
        "look at dmesg for NVRM and Xid lines; in a container check that /dev/nvidia* may be opened"
    ),
    "driver-wedged": lambda: _(
        "the driver does not answer: look at dmesg for NVRM and Xid lines, drain the node and reboot it"
    ),
    "no-device": lambda: _(
        "check CUDA_VISIBLE_DEVICES (unset it), and in a container start it with --gpus all"
    ),
    "gpu-full": lambda: _("the GPU is full: see who uses it with nvidia-smi, and choose another one"),
    "gpu-taken": lambda: _(
        "the GPU is in exclusive mode and taken: choose another one, or ask the scheduler for it"
    ),
    "wrong-arch": lambda: _(
        "this build of torch has no code for this GPU: `envkit up --cuda auto` picks a variant that has"
    ),
    "fork-after-cuda": lambda: _(
        "CUDA was used before the workers were forked: use none in the dataset, or"
        " multiprocessing_context='spawn'"
    ),
    "native-crash": lambda: _(
        "a native library crashed in a worker: run with PYTHONFAULTHANDLER=1 to see where"
    ),
}


def remedy(key: str) -> str:
    """The words for a key, in the language in use. KeyError for a key that no words were written for."""
    return REMEDIES[key]()
