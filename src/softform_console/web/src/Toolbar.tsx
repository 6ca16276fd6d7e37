import { useEffect, useState } from 'react'
import { Choice } from './panel/parts'
import { saveScreenshot } from './screenshot'
import { view, type Side } from './scene/View'
import { note, robotInfo, useStore } from './store'
import { handOver, lookAtRobot, mayOperate } from './steering'
import { toggleTheme, useTheme } from './theme'
import { hasHeadset, vr } from './vr/session'

const SIDES: [Side, string][] = [
  ['oblique', 'Fit'],
  ['top', 'Top'],
  ['front', 'Front'],
  ['side', 'Side'],
]

/** Name of the robot, and who steers. */
export function Toolbar() {
  const hello = useStore((store) => store.hello)
  const info = useStore(robotInfo)
  return (
    <header className="toolbar">
      <div className="brand">
        <svg viewBox="0 0 32 24" width="32" height="24" aria-hidden="true">
          <path
            d="M2 19c7 0 7-14 14-14s7 14 14 14"
            fill="none"
            stroke="#ff9d2e"
            strokeWidth="4"
            strokeLinecap="round"
          />
        </svg>
        {hello && hello.robots.length > 1 ? (
          <Choice
            label="Robot"
            quiet
            value={String(info?.index)}
            options={hello.robots.map((robot) => [String(robot.index), robot.title] as const)}
            onChange={(robot) => lookAtRobot(Number(robot))}
          />
        ) : (
          <h1>{info?.title ?? 'Softform'}</h1>
        )}
        <Role />
      </div>
    </header>
  )
}

/** How the robot is looked at. */
export function ViewTools() {
  const theme = useTheme()
  const [headset, setHeadset] = useState(false)
  useEffect(() => void hasHeadset().then(setHeadset), [])
  return (
    <div className="tools" role="group" aria-label="View">
      {SIDES.map(([side, text]) => (
        <button key={side} type="button" onClick={() => view.look(side)}>
          {text}
        </button>
      ))}
      <button
        type="button"
        onClick={saveScreenshot}
        aria-label="Save the picture as a PNG"
        title="Save the picture as a PNG"
      >
        ⤓
      </button>
      {headset && (
        <button
          type="button"
          onClick={() =>
            void vr.enterVR().catch((error: Error) => note('error', `The headset did not start: ${error.message}`))
          }
        >
          VR
        </button>
      )}
      <button
        type="button"
        onClick={toggleTheme}
        aria-label={`Change to a ${theme === 'dark' ? 'light' : 'dark'} page`}
        title="Dark or light"
      >
        {theme === 'dark' ? '☀' : '☾'}
      </button>
    </div>
  )
}

function Role() {
  const operator = useStore((store) => store.state?.operator)
  const clients = useStore((store) => store.state?.clients ?? 1)
  if (!operator) return null
  const others = clients > 1 ? ` · ${clients - 1} more ${clients > 2 ? 'pages' : 'page'}` : ''
  if (operator === 'other') return <span className="role">You watch{others}</span>
  return (
    <span className="role" data-you={operator === 'you' || undefined}>
      <span className="who">
        {operator === 'you' ? 'You steer' : 'Nobody steers'}
        {others}
      </span>
      <button type="button" onClick={() => (operator === 'you' ? handOver() : mayOperate())}>
        {operator === 'you' ? 'Hand over' : 'Steer'}
      </button>
    </span>
  )
}
