"""What a machine is and has: asked of its own tools, nothing changed."""
import json
import os
import platform
import re
import shutil
import sys

TOOLKIT = "/usr/local/cuda"

# File -> command. All but nvidia-smi and lspci are on every Linux.
COMMANDS = {
    "nvidia-smi.txt": ["nvidia-smi", "-q"],
    "topology.txt": ["nvidia-smi", "topo", "-m"],
    "lscpu.txt": ["lscpu"],
    "lspci.txt": ["lspci", "-vvv"],
    "numa.txt": ["numactl", "--hardware"],
    "libc.txt": ["ldd", "--version"],
    "uname.txt": ["uname", "-a"],
    "memory.txt": ["free", "-b"],
    "disks.txt": ["lsblk", "-b", "-o", "NAME,MODEL,SIZE,ROTA,TRAN,MOUNTPOINT"],
    "mounts.txt": ["df", "-B1", "-T"],
    "nvcc.txt": ["nvcc", "--version"],
    "sanitizer.txt": ["compute-sanitizer", "--version"],
}

_PYTORCH = """
import json
found = {"python": __import__("platform").python_version()}
try:
    import torch
    found.update(torch=torch.__version__, cuda=str(torch.version.cuda), sees_gpu=torch.cuda.is_available())
    if torch.cuda.is_available():
        gpu = torch.cuda.get_device_properties(0)
        found.update(gpu=gpu.name, gpu_memory_bytes=gpu.total_memory, multiprocessors=gpu.multi_processor_count,
                     cudnn=torch.backends.cudnn.version())
except Exception as error:
    found["torch_error"] = f"{type(error).__name__}: {error}"
try:
    import importlib.metadata
    found["transformers"] = importlib.metadata.version("transformers")
except Exception:
    pass
try:
    import glob, nvidia
    found["libraries"] = [folder for path in nvidia.__path__ for folder in sorted(glob.glob(path + "/*/lib"))]
except Exception:
    pass
print(json.dumps(found))
"""


def tool_path():
    """PATH with the toolkit's programs behind it."""
    return os.environ.get("PATH", "/usr/bin:/bin") + f":{os.environ.get('CUDA_HOME', TOOLKIT)}/bin"


def has_tool(name):
    return shutil.which(name, path=tool_path()) is not None


def why_program_fails(program, output_of):
    """None when spillway runs here, else why not; and what it says it is. `output_of`: Campaign's."""
    if program is None:
        return "no spillway beside this script (bin/spillway of a release, build/cli/spillway of a checkout)", ""
    said, error = output_of(program, "--version", seconds=10)
    if said is None:
        return f"{program} doesn't run here: {error.splitlines()[-1] if error else 'it says nothing'}", ""
    return None, said.strip()


def pytorch(output_of, seconds):
    """What Python's packages are, by a process of their own: importing PyTorch may take long, or fail."""
    said, error = output_of(sys.executable, "-c", _PYTORCH, seconds=seconds)
    return json.loads(said.splitlines()[-1]) if said else {"torch_error": error}


def gpu(output_of):
    """name, driver, memory of the first GPU as nvidia-smi has them; empty without one."""
    said, _ = output_of("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")
    if not said or said.count(",") < 2:
        return {}
    name, driver, memory = (word.strip() for word in said.splitlines()[0].split(","))
    return {"gpu": name, "driver": driver, "gpu_memory": memory}


def host():
    processor = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            match = re.search(r"^model name\s*:\s*(.*)$", info.read(), re.MULTILINE)
            processor = match.group(1) if match else ""
    except OSError:
        pass
    return {"kernel": platform.release(), "libc": " ".join(platform.libc_ver()), "processor": processor,
            "processors": str(len(os.sched_getaffinity(0)))}
