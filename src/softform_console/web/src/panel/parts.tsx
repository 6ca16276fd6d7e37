import type { ReactNode } from 'react'
import { millimetres } from '../quantities'
import { NumberField } from './NumberField'

/** Three numbers of one kind: a place, or edges. */
export type Triple = [number, number, number]

/** One of a few, by name; a label that is `quiet` is not shown. */
export function Choice<T extends string>(props: {
  label: string
  quiet?: boolean
  value: T
  options: readonly (readonly [T, string])[]
  onChange(value: NoInfer<T>): void
}) {
  return (
    <label className={props.quiet ? 'quiet' : 'field wide'}>
      <span className={props.quiet ? 'visually-hidden' : undefined}>{props.label}</span>
      <select value={props.value} onChange={(event) => props.onChange(event.target.value as T)}>
        {props.options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}

/** A cross that takes something away. */
export function Cross({ label, ...more }: { label: string; disabled?: boolean; onClick(): void }) {
  return (
    <button type="button" className="plain-button" aria-label={label} {...more}>
      ✕
    </button>
  )
}

/** What is known, in a list of class `facts`. */
export function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}

/** An error in words. */
export function errorText(mean: number | null, max: number | null): string {
  return `${millimetres(mean)}, largest ${millimetres(max)}`
}

interface ItemProps {
  number: number
  name: string
  about: string
  chosen: boolean
  disabled?: boolean
  /** What it is, as its cross says. */
  kind: string
  onChoose(): void
  onRemove(): void
  children: ReactNode
}

/** One of a list, such as a point: what is known of it in a line, and its fields while it is chosen. */
export function Item({ number, name, about, chosen, disabled, kind, onChoose, onRemove, children }: ItemProps) {
  return (
    <li data-selected={chosen || undefined}>
      <div className="pin-head">
        <button type="button" className="plain-button" aria-expanded={chosen} onClick={onChoose}>
          <b>{number}</b> {name}
        </button>
        <span className="pin-error">{about}</span>
        <Cross label={`Remove ${kind} ${number}`} disabled={disabled} onClick={onRemove} />
      </div>
      {chosen && <div className="pin-fields">{children}</div>}
    </li>
  )
}

/** Fields for three lengths of m, in mm. */
export function Lengths(props: {
  labels: [string, string, string]
  value: Triple
  least?: number
  disabled?: boolean
  onChange(value: Triple): void
}) {
  return props.labels.map((label, k) => (
    <NumberField
      key={label}
      label={label}
      value={1e3 * props.value[k]}
      least={props.least}
      disabled={props.disabled}
      onChange={(value) => props.onChange(props.value.with(k, value / 1e3) as Triple)}
    />
  ))
}
