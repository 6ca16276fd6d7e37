/** The program that is shown: its text, its blocks, and what they do. */

import { create } from 'zustand'
import type { ProgramRead, ProgramState } from './protocol'

export const NO_PROGRAM = {
  text: '',
  read: null as ProgramRead | null,
  /** What blocks said last, by their rows. */
  said: {} as Record<number, string>,
  running: false,
  /** Row of the block that runs, or at which the program ended. */
  row: null as number | null,
  ended: null as ProgramState | null,
}

export const useProgram = create(() => NO_PROGRAM)

/** Take what the server says of a program. */
export function takeProgram(message: ProgramRead | ProgramState): void {
  if (message.type === 'program_read') useProgram.setState({ ...NO_PROGRAM, text: message.text, read: message })
  else if (message.ended) useProgram.setState({ running: false, row: message.row, ended: message })
  else
    useProgram.setState(({ said }) => ({
      running: true,
      row: message.row,
      said: message.row === null ? said : { ...said, [message.row]: message.text },
    }))
}

/** Note that no program runs any more, or has not begun. */
export function programEnded(): void {
  useProgram.setState({ running: false })
}
