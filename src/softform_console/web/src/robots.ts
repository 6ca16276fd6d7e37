/** Which robot is looked at; what was meant for one is none of another one. */

import { forgetMotions } from './motion'
import { NO_PROGRAM, useProgram } from './program'
import type { Hello } from './protocol'
import { forgetShaping } from './shaping'
import { NO_TARGET, robotInfo, useStore } from './store'

/** Look at a robot, and forget what was meant for the one before. */
export function showRobot(robot: number): void {
  useStore.setState({ robot, pins: [], selected: null, manual: null, target: NO_TARGET, scaleTop: 0 })
  useProgram.setState(NO_PROGRAM)
  forgetMotions()
  forgetShaping()
  if (robotInfo(useStore.getState())?.holds) useStore.setState({ colouring: 'uncertainty' })
}

/** Take the robots of a server that was reached, or reached again: another one may have the number of the one before. */
export function takeHello(hello: Hello): void {
  const before = useStore.getState()
  const looked = robotInfo(before)
  const same = hello.robots.find((one) => one.name === looked?.name && one.frame === looked.frame)
  useStore.setState({ hello, connected: true, everConnected: true, ...(same && { robot: same.index }) })
  if (!same || same.index !== before.robot) showRobot((same ?? hello.robots[0])?.index ?? 0)
}
