import { SCALE_GRADIENT } from './colours'
import { Choice } from './panel/parts'
import { robotInfo, useStore, type Colouring, type Layer } from './store'

const COLOURINGS: [Colouring, string][] = [
  ['deformation', 'Deformation'],
  ['uncertainty', 'Uncertainty (1 σ)'],
  ['distance', 'Distance of the scan'],
  ['plain', 'No colours'],
]
/** What some of these are of an object that arms hold. */
const OF_OBJECT: Record<string, string> = {
  uncertainty: 'Von Mises stress',
  distance: 'Distance of the true object',
  surface: 'As believed',
  cloud: 'True object',
}
const LAYERS: [Layer, string][] = [
  ['surface', 'Predicted'],
  ['cloud', 'Scanned'],
  ['markers', 'Markers'],
  ['target', 'Target'],
  ['contact', 'Contact'],
  ['frames', 'Frames'],
  ['grid', 'Grid'],
]

/** What the colours mean in mm, and what is shown. */
export function Legend() {
  const colouring = useStore((store) => store.colouring)
  const scaleTop = useStore((store) => store.scaleTop)
  const scene = useStore((store) => store.scene)
  const layers = useStore((store) => store.layers)
  const section = useStore((store) => store.section)
  const holds = useStore((store) => robotInfo(store)?.holds ?? false)
  const missing = missingText(colouring, scene)
  const named = (key: string, text: string) => (holds && OF_OBJECT[key]) || text
  const [factor, unit] = holds && colouring === 'uncertainty' ? [1e-3, 'kPa'] : [1e3, 'mm']
  const tick = (value: number) => `${Number((factor * value).toPrecision(3))} ${unit}`
  const change = (layer: Layer) => useStore.setState({ layers: { ...layers, [layer]: !layers[layer] } })
  return (
    <section className="legend" aria-label="Legend">
      {scene.surface && (
        <Choice
          label="Colours show"
          quiet
          value={colouring}
          options={COLOURINGS.map(([key, text]) => [key, named(key, text)] as const)}
          onChange={(chosen) => useStore.setState({ colouring: chosen, scaleTop: 0 })}
        />
      )}
      {!scene.surface ? null : missing ? (
        <p className="legend-note">{missing}</p>
      ) : (
        colouring !== 'plain' && (
          <div className="scale" aria-label={`From 0 to ${tick(scaleTop)}`}>
            <div className="scale-bar" style={{ background: SCALE_GRADIENT }} />
            <div className="scale-ticks">
              {[0, 0.5, 1].map((share) => (
                <span key={share}>{tick(share * scaleTop)}</span>
              ))}
            </div>
          </div>
        )
      )}
      <details>
        <summary>Show and hide</summary>
        <div className="layers" role="group" aria-label="Shown">
          {LAYERS.map(([layer, text]) => (
            <button
              key={layer}
              type="button"
              className="chip"
              data-layer={layer}
              aria-pressed={layers[layer]}
              onClick={() => change(layer)}
            >
              {named(layer, text)}
            </button>
          ))}
        </div>
        {scene.surface && (
          <label className="section-slider">
            Cut
            <input
              type="range"
              min={0.02}
              max={1}
              step={0.01}
              value={section}
              aria-label="Where the surface is cut, across x"
              onChange={(event) => useStore.setState({ section: Number(event.target.value) })}
            />
          </label>
        )}
      </details>
    </section>
  )
}

function missingText(colouring: Colouring, scene: ReturnType<typeof useStore.getState>['scene']): string | null {
  if (colouring === 'uncertainty' && !scene.uncertainty) return 'The model of this robot tells no uncertainty.'
  if (colouring === 'deformation' && !scene.rest) return 'The shape at rest was not seen yet.'
  if (colouring === 'distance' && !scene.cloud) return 'Nothing was scanned yet.'
  return null
}
