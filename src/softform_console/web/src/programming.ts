/** What the operator does with programs: YAML that the server reads and runs. */

import { send } from './control'
import { NO_PROGRAM, useProgram } from './program'
import { mayOperate } from './steering'
import { robotInfo, useStore, valuesNow } from './store'

/** Have a program read and shown on all pages; an empty one is forgotten here. */
export function readProgram(text: string): void {
  if (useProgram.getState().running) return
  useProgram.setState({ ...NO_PROGRAM, text })
  if (text && mayOperate()) send({ type: 'program', robot: useStore.getState().robot, epoch: '0', text })
}

/** Add a block at the end of the program; where there is none, to a new one. */
export function addBlock(block: string): void {
  const text = useProgram.getState().text || `robot: ${robotInfo(useStore.getState())?.name}\nblocks:\n`
  const indent = /^blocks:.*\n( *)-/m.exec(text)?.[1] ?? '  '
  readProgram(`${text.trimEnd()}\n${indent}- ${block}\n`)
}

/** The points that are set now, as a block; null where there are none. */
export function pointsBlock(): string | null {
  const points = useStore.getState().pins.map(({ output, u, v, target }) => {
    const place = target.map((one) => Number(one.toFixed(5))).join(', ')
    return `{output: ${JSON.stringify(output)}, u: ${u.toFixed(4)}, v: ${v.toFixed(4)}, target: [${place}]}`
  })
  return points.length ? `move_to_points: [${points.join(', ')}]` : null
}

/** The values of now as a block; null where none are known. */
export function valuesBlock(): string | null {
  const limits = robotInfo(useStore.getState())?.actuators ?? []
  const values = valuesNow(useStore.getState())?.map((one, k) =>
    Math.min(limits[k].high, Math.max(limits[k].low, Number(one.toPrecision(6)))),
  )
  return values ? `move_to_values: [${values.join(', ')}]` : null
}

/** Run the program that was read. */
export function runProgram(): void {
  const { robot, gestureEpoch: epoch } = useStore.getState()
  if (!epoch || !mayOperate()) return
  useProgram.setState({ said: {}, running: true, row: null, ended: null })
  send({ type: 'program', robot, epoch, text: useProgram.getState().text, run: true })
}
