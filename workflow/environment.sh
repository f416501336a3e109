# Make .venv afresh from the two locks: only files whose checksums are there are installed.
set -eu
torch=https://download.pytorch.org/whl/cpu/torch/
"$PYTHON" -c 'import sys; v = sys.version_info[:2]; sys.exit(not (3, 11) <= v <= (3, 13) and
  "Python 3.11, 3.12 or 3.13 is needed, this is %d.%d: make PYTHON=python3.11 ..." % v)'
echo "Setting up .venv (1.8 GB, a minute or two) ..."
"$PYTHON" -m venv --clear .venv || {
  echo "$PYTHON cannot make an environment. On Debian and Ubuntu: apt install python3-venv."; exit 1; }
links=
if [ "$(uname -s)" = Linux ]; then  # where torch's build without CUDA lies on an index of its own
  if "$PYTHON" -c "import urllib.request as r; r.urlopen('$torch', timeout=3)" 2> /dev/null; then
    links="--find-links $torch"
  else
    echo "$torch does not answer: pip has to find torch's build without CUDA elsewhere, such as in PIP_FIND_LINKS."
  fi
fi
.venv/bin/pip install --quiet --no-compile --no-cache-dir --disable-pip-version-check \
  --require-hashes $links -r requirements.lock -r torch.lock
echo "$PWD" > "$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/icarma_companion.pth"
touch .venv/ready
