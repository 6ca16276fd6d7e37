import { view } from './scene/View'
import { useStore } from './store'
import { changePin, removePin, setOptimise } from './steering'

/** Keys beside the space bar, which stops; shown in the panel. */
export const KEYS: [string, string][] = [
  ['Space', 'stop'],
  ['1 2 3 …', 'select a point'],
  ['arrows, Page ↑ ↓', 'move the selected point by 1 mm (with Shift 10 mm), else turn the view'],
  ['Delete', 'remove the selected point'],
  ['H', 'hold the robot, follow again'],
  ['+ −', 'nearer, further'],
  ['F', 'show the whole robot'],
  ['Escape', 'select nothing'],
]

const STEP = 1e-3
const MOVES: Record<string, [number, number, number]> = {
  ArrowLeft: [-1, 0, 0],
  ArrowRight: [1, 0, 0],
  ArrowUp: [0, 1, 0],
  ArrowDown: [0, -1, 0],
  PageUp: [0, 0, 1],
  PageDown: [0, 0, -1],
}

/** Listen to keys wherever no field is written to. */
export function startKeys(): void {
  window.addEventListener('keydown', (event) => {
    const target = event.target as HTMLElement
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return
    if (press(event.key, event.shiftKey)) event.preventDefault()
  })
}

const ACTIONS: Record<string, () => void> = {
  h: () => setOptimise(!useStore.getState().optimise),
  f: () => view.look('oblique'),
  '+': () => view.zoom(0.9),
  '-': () => view.zoom(1.1),
  escape: () => useStore.setState({ selected: null }),
}

function press(key: string, shift: boolean): boolean {
  const { selected, pins } = useStore.getState()
  const action = ACTIONS[key.toLowerCase()]
  if (MOVES[key]) moveOrTurn(MOVES[key], shift)
  else if (/^[1-9]$/.test(key)) useStore.setState({ selected: pins[Number(key) - 1]?.id ?? selected })
  else if (/^(Delete|Backspace)$/.test(key) && selected !== null) removePin(selected)
  else if (action) action()
  else return false
  return true
}

function moveOrTurn(direction: [number, number, number], shift: boolean): void {
  const { selected, pins } = useStore.getState()
  const pin = pins.find((one) => one.id === selected)
  if (!pin) {
    view.turn(0.08 * direction[0], 0.08 * (direction[1] || direction[2]))
    return
  }
  const step = shift ? 10 * STEP : STEP
  const [x, y, z] = pin.target.map((value, k) => value + step * direction[k])
  changePin(pin.id, { target: [x, y, z] })
}
