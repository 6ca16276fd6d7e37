import type { RobotState, Stopped } from './protocol'

/** How the state is coloured; each has a sign of its own, too. */
export type Tone = 'rest' | 'moving' | 'held' | 'wait' | 'fault' | 'unknown'

/** One word for the operator, and a sentence behind it. */
export interface Status {
  tone: Tone
  word: string
  detail: string
}

const UNKNOWN: Status = {
  tone: 'unknown',
  word: 'Not known',
  detail: 'The driver says nothing: whether the robot moves is not known.',
}
const GRAVITY: Tone[] = ['unknown', 'fault', 'moving', 'wait', 'held', 'rest']

/** What a robot does, as its driver measures it: "stopped" is said only of what is measured at rest. */
export function robotStatus(robot: RobotState): Status {
  const { driver, settled } = robot
  switch (driver.state) {
    case 'safe':
      return driver.all_at_rest
        ? { tone: 'rest', word: 'Stopped', detail: 'All actuators are measured at rest.' }
        : { tone: 'wait', word: 'Stopping', detail: driver.reason || 'Not all actuators are measured at rest yet.' }
    case 'running':
      return settled
        ? { tone: 'held', word: 'Holding', detail: 'At its command, under power.' }
        : { tone: 'moving', word: 'Moving', detail: '' }
    case 'making_safe':
      return { tone: 'wait', word: 'Stopping', detail: driver.reason || 'Not all actuators are measured at rest yet.' }
    case 'holding':
      return {
        tone: 'held',
        word: 'Held by motors',
        detail: driver.reason || 'Under power without a command: do not touch.',
      }
    case 'fault':
      if (driver.stopped && driver.stands_still) {
        return {
          tone: 'held',
          word: 'Stopped',
          detail: 'By request. Its brakes hold it, and it stands still: do not touch.',
        }
      }
      if (driver.stopped) {
        return driver.all_at_rest
          ? { tone: 'rest', word: 'Stopped', detail: 'By request. All actuators are measured at rest.' }
          : { tone: 'wait', word: 'Stopping', detail: 'By request. Not all actuators are measured at rest yet.' }
      }
      return { tone: 'fault', word: 'At fault', detail: driver.reason }
    case 'offline':
      return {
        tone: 'unknown',
        word: 'Offline',
        detail: driver.reason || 'The driver is not connected to its devices.',
      }
    case 'silent':
      return UNKNOWN
  }
}

/** The gravest status of all robots, and what the newest stop says while it is under way. */
export function overallStatus(connected: boolean, robots: RobotState[] | null, stop: Stopped | null): Status {
  if (!connected)
    return { tone: 'unknown', word: 'No connection', detail: 'Trying again. STOP still tries another way.' }
  if (!robots?.length) return UNKNOWN
  const all = robots.map(robotStatus)
  const gravest = all.reduce((a, b) => (GRAVITY.indexOf(b.tone) < GRAVITY.indexOf(a.tone) ? b : a))
  if (gravest.tone === 'rest' || !stop || stop.stage === 'confirmed') return gravest
  if (stop.stage === 'unconfirmed') return { tone: 'fault', word: 'NOT confirmed', detail: stop.message }
  if (gravest.tone === 'fault') return gravest
  return { tone: 'wait', word: 'Stopping', detail: stop.message || 'Not all actuators are measured at rest yet.' }
}
