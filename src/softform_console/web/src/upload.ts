import type { Uploaded } from './protocol'
import { note, setTarget, useStore } from './store'
import { send } from './control'

/** Units that a file may be in; none is guessed. */
export const UNITS = ['mm', 'm'] as const
export type Unit = (typeof UNITS)[number]

/** Send a target file in a unit for the robot that is looked at, and ask for its preview. */
export async function uploadTarget(file: File, unit: Unit): Promise<void> {
  setTarget({ uploaded: null, preview: null, progress: null, result: null, busy: true })
  const { robot } = useStore.getState()
  const isMeant = () => useStore.getState().robot === robot
  try {
    const query = new URLSearchParams({ name: file.name, unit, robot: String(robot) })
    const response = await fetch(`targets?${query}`, { method: 'POST', body: file })
    const answer = (await response.json()) as Uploaded | { message: string }
    if ('message' in answer) throw new Error(answer.message)
    if (!isMeant()) return note('info', `${file.name} was dropped for the robot that you looked at then.`, 'targets')
    setTarget({ uploaded: answer })
    if (answer.text) note('warning', answer.text, 'targets')
    previewTarget()
  } catch (error) {
    if (isMeant()) setTarget({ busy: false })
    note('error', `${file.name} was not taken: ${(error as Error).message}`, 'targets')
  }
}

/** Show where the target would be, in the pose that is chosen. */
export function previewTarget(): void {
  const { robot, target } = useStore.getState()
  if (!target.uploaded) return
  setTarget({ preview: null, busy: true })
  send({ type: 'preview', robot, target: target.uploaded.id, pose: target.pose })
}
