import type { CSSProperties } from 'react'
import type { Actuator } from '../protocol'
import { display, shown } from '../quantities'
import { setActuator } from '../steering'
import { robotInfo, robotState, useStore, valuesNow } from '../store'

/** A slider for each degree of freedom, with what is commanded and what is measured. */
export function Actuators() {
  const info = useStore(robotInfo)
  const robot = useStore(robotState)
  const values = useStore(valuesNow)
  const watching = useStore((store) => store.state?.operator === 'other')
  if (!info || !robot) return null
  const blocked =
    watching || robot.driver.state === 'fault' || robot.driver.state === 'offline' || robot.driver.state === 'silent'
  return (
    <section className="section">
      <h2>
        Actuators{' '}
        <span className="muted">{robot.steering === 'manual' ? 'by hand' : 'drag a slider to move by hand'}</span>
      </h2>
      <div className="actuators">
        {info.actuators.map((actuator, index) => (
          <ActuatorRow
            key={actuator.name}
            actuator={actuator}
            value={values?.[index] ?? actuator.safe}
            measured={robot.measured?.[index] ?? null}
            blocked={blocked}
            onChange={(value) => setActuator(index, value)}
          />
        ))}
      </div>
      <p className="muted legend-line">
        <span className="swatch swatch-measured" /> measured <span className="swatch swatch-command" /> commanded
      </p>
    </section>
  )
}

interface RowProps {
  actuator: Actuator
  value: number
  measured: number | null
  blocked: boolean
  onChange(value: number): void
}

/** A slider with what it is, where it stands, and what is measured. */
export function ActuatorRow({ actuator, value, measured, blocked, onChange }: RowProps) {
  const { low, high, name, unit } = actuator
  const share = measured === null ? 0 : Math.max(0, Math.min(1, (measured - low) / (high - low || 1)))
  const style = { '--share': share.toFixed(4) } as CSSProperties
  return (
    <label className="actuator" style={style}>
      <span className="actuator-name">{name}</span>
      <span className="track">
        {measured !== null && <span className="measured" aria-hidden="true" />}
        <input
          type="range"
          min={low}
          max={high}
          step={(high - low) / 200}
          value={value}
          disabled={blocked}
          aria-label={`${name}, from ${shown(low, unit)} to ${shown(high, unit)}`}
          aria-valuetext={shown(value, unit)}
          onChange={(event) => onChange(Number(event.target.value))}
        />
      </span>
      <output title="measured">
        {measured === null ? '–' : (measured * display(unit).factor).toFixed(display(unit).digits)}
      </output>
      <span className="unit">{display(unit).unit}</span>
    </label>
  )
}
