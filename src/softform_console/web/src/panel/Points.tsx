import { useState } from 'react'
import * as THREE from 'three'
import { millimetres } from '../quantities'
import { featurePoint } from '../scene/Pins'
import { addPin, changePin, removePin, setOptimise } from '../steering'
import { note, robotInfo, shownPins, useStore, type Pin } from '../store'
import { NumberField } from './NumberField'
import { Choice, Item, Lengths } from './parts'

/** The points that are wanted; all that can be done to them by mouse can be done here by keys. */
export function Points() {
  const pins = useStore(shownPins)
  const selected = useStore((store) => store.selected)
  const optimise = useStore((store) => store.optimise)
  const watching = useStore((store) => store.state?.operator === 'other')
  const holds = useStore((store) => robotInfo(store)?.holds)
  useStore((store) => store.state) // errors are those of now
  return (
    <section className="section">
      <h2>
        Points {pins.length > 0 && <span className="count">{pins.length}</span>}
        {!holds && (
          <label className="switch" title="Off: the robot holds while you arrange points">
            <input
              type="checkbox"
              role="switch"
              checked={optimise}
              disabled={watching}
              onChange={(event) => setOptimise(event.target.checked)}
              onKeyDown={(event) => event.key === 'Enter' && setOptimise(!optimise)}
            />
            Follow
          </label>
        )}
      </h2>
      {pins.length === 0 && (
        <p className="muted">
          Press the {holds ? 'object' : 'robot'} where you want a point, and drag it. Hold Shift to slide it.
        </p>
      )}
      <ol className="pins">
        {pins.map((pin, index) => (
          <PinRow key={pin.id} pin={pin} number={index + 1} selected={pin.id === selected} disabled={watching} />
        ))}
      </ol>
      {!watching && !holds && <AddPin />}
    </section>
  )
}

interface RowProps {
  pin: Pin
  number: number
  selected: boolean
  disabled: boolean
}

function PinRow({ pin, number, selected, disabled }: RowProps) {
  const here = new THREE.Vector3()
  const off = featurePoint(pin, here) ? here.distanceTo(new THREE.Vector3(...pin.target)) : null
  return (
    <Item
      number={number}
      name={pin.output}
      about={`${millimetres(off)} off`}
      chosen={selected}
      disabled={disabled}
      kind="point"
      onChoose={() => useStore.setState({ selected: selected ? null : pin.id })}
      onRemove={() => removePin(pin.id)}
    >
      <Lengths
        labels={['x, mm', 'y, mm', 'z, mm']}
        value={pin.target}
        disabled={disabled}
        onChange={(target) => changePin(pin.id, { target })}
      />
      <NumberField
        label="weight"
        value={pin.weight}
        least={0.001}
        disabled={disabled}
        onChange={(weight) => changePin(pin.id, { weight })}
      />
    </Item>
  )
}

function AddPin() {
  const info = useStore(robotInfo)
  const [output, setOutput] = useState<string | null>(null)
  const [uv, setUv] = useState<[number, number]>([0.5, 0.5])
  if (!info?.outputs.length) return null
  const chosen = info.outputs.find((one) => one.name === output) ?? info.outputs[0]
  const add = () => {
    const place = new THREE.Vector3()
    const pin = { id: 0, output: chosen.name, u: uv[0], v: uv[1], weight: 1, target: [0, 0, 0] as Pin['target'] }
    if (featurePoint(pin, place)) addPin({ output: chosen.name, u: uv[0], v: uv[1], target: place.toArray() })
    else note('warning', `The mesh that is shown has no such point of ${chosen.name}.`)
  }
  return (
    <details className="add">
      <summary>Add a point by numbers</summary>
      <div className="pin-fields">
        {info.outputs.length > 1 && (
          <Choice
            label="output"
            value={chosen.name}
            options={info.outputs.map(({ name }) => [name, name] as const)}
            onChange={setOutput}
          />
        )}
        {chosen.kind === 'patch' &&
          (['u', 'v'] as const).map((name, k) => (
            <NumberField
              key={name}
              label={`${name}, 0 … 1`}
              value={uv[k]}
              least={0}
              most={1}
              step={0.05}
              onChange={(value) => setUv(uv.with(k, value) as [number, number])}
            />
          ))}
        <button type="button" onClick={add}>
          Add
        </button>
      </div>
    </details>
  )
}
