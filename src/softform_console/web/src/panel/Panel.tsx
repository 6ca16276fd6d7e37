import { KEYS } from '../keys'
import { Actuators } from './Actuators'
import { MotionSection } from './MotionSection'
import { ObjectSection } from './ObjectSection'
import { Points } from './Points'
import { ProgramSection } from './ProgramSection'
import { RobotSection } from './RobotSection'
import { TargetSection } from './TargetSection'
import { robotInfo, useStore } from '../store'

/** The one panel: robot, points, actuators, target, keys. */
export function Panel({ open, onToggle }: { open: boolean; onToggle(): void }) {
  const holds = useStore((store) => robotInfo(store)?.holds)
  return (
    <aside className="panel" aria-label="Controls">
      <button type="button" className="panel-toggle" aria-expanded={open} onClick={onToggle}>
        {open ? 'Hide controls' : 'Controls'}
      </button>
      {open && (
        <div className="panel-body">
          <RobotSection />
          <Points />
          {holds ? (
            <ObjectSection />
          ) : (
            <>
              <Actuators />
              <TargetSection />
              <MotionSection />
              <ProgramSection />
            </>
          )}
          <details className="section">
            <summary>Keys</summary>
            <dl className="keys">
              {KEYS.map(([key, text]) => (
                <div key={key}>
                  <dt>{key}</dt>
                  <dd>{text}</dd>
                </div>
              ))}
              <div>
                <dt>Shift + drag</dt>
                <dd>slide a point along the surface</dd>
              </div>
            </dl>
          </details>
        </div>
      )}
    </aside>
  )
}
