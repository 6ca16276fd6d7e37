# SPDX-License-Identifier: Apache-2.0
# What `./softform shell` begins with: the user's own file, then the environment, which that may have changed.
[ ! -f ~/.bashrc ] || . ~/.bashrc
. "$SOFTFORM_HOME/.venv/softform_env.sh"
softform() { "$SOFTFORM_HOME/softform" "$@"; }
eval "$(softform completion bash)"
PS1="(softform) ${PS1-}"
