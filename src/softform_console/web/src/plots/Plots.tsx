import { useEffect, useMemo, useRef, useState } from 'react'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { Choice } from '../panel/parts'
import { display } from '../quantities'
import { saveBlob } from '../screenshot'
import { robotInfo, robotState, useStore } from '../store'
import { useThemeColour } from '../theme'
import { History } from './history'

/** Okabe and Ito's colours, which the colour-blind tell apart; each has a dash of its own after the first eight. */
const COLOURS = ['#0072b2', '#e69f00', '#009e73', '#d55e00', '#56b4e9', '#cc79a7', '#b8a800', '#8a8a8a']
const HEIGHT = 190
const REFRESH = 200

type Kind = 'actuators' | 'errors' | 'latency' | 'iterations'
const KINDS: [Kind, string][] = [
  ['actuators', 'Actuators: measured, commanded dashed'],
  ['errors', 'Errors of what is followed'],
  ['latency', 'Latency of the servo'],
  ['iterations', 'Iterations of the solver'],
]

/** Command, measured, errors and latency over time; drag to zoom, twice to see all. */
export function Plots() {
  const [open, setOpen] = useState(false)
  const [kind, setKind] = useState<Kind>('actuators')
  const history = useHistory()
  if (!history) return null
  const save = () => saveBlob(new Blob([history.csv()], { type: 'text/csv' }), 'csv')
  return (
    <section className="plots" data-open={open || undefined} aria-label="Plots">
      <div className="plots-head">
        <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
          Plots
        </button>
        {open && (
          <>
            <Choice label="What is plotted" quiet value={kind} options={KINDS} onChange={setKind} />
            <button type="button" onClick={save}>
              CSV
            </button>
          </>
        )}
      </div>
      {open && <Plot key={kind} history={history} kind={kind} />}
    </section>
  )
}

/** The past since the page was opened, of the robot that is looked at. */
function useHistory(): History | null {
  const info = useStore(robotInfo)
  const history = useMemo(() => info && new History(info.actuators), [info])
  useEffect(
    () =>
      useStore.subscribe((now, before) => {
        const robot = robotState(now)
        if (now.state && robot && now.state.stamp !== before.state?.stamp) history?.push(now.state.stamp, robot)
      }),
    [history],
  )
  return history
}

function Plot({ history, kind }: { history: History; kind: Kind }) {
  const element = useRef<HTMLDivElement>(null)
  const text = useThemeColour('--muted')
  const edge = useThemeColour('--edge')
  useEffect(() => {
    const parent = element.current!
    const { indices, series, unit, factor } = chosen(history, kind)
    const axis = { stroke: text, grid: { stroke: edge, width: 1 }, ticks: { stroke: edge } }
    const plot = new uPlot(
      {
        width: parent.clientWidth,
        height: HEIGHT,
        cursor: { drag: { x: true, y: false } },
        series: [
          { value: (_, stamp) => (stamp == null ? '–' : new Date(1e3 * stamp).toLocaleTimeString()) },
          ...series,
        ],
        axes: [axis, { ...axis, label: unit, labelSize: 20, size: 52 }],
      },
      history.columns(indices, factor) as uPlot.AlignedData,
      parent,
    )
    let zoomed = false
    plot.over.addEventListener('mouseup', () => (zoomed = plot.select.width > 0 || zoomed))
    plot.over.addEventListener('dblclick', () => (zoomed = false))
    const timer = setInterval(
      () => plot.setData(history.columns(indices, factor) as uPlot.AlignedData, !zoomed),
      REFRESH,
    )
    const resized = new ResizeObserver(() => plot.setSize({ width: parent.clientWidth, height: HEIGHT }))
    resized.observe(parent)
    return () => {
      clearInterval(timer)
      resized.disconnect()
      plot.destroy()
    }
  }, [history, kind, text, edge])
  return <div ref={element} className="plot" />
}

interface Chosen {
  indices: number[]
  series: uPlot.Series[]
  unit: string
  factor: number
}

function line(label: string, at: number, dash?: number[]): uPlot.Series {
  return { label, stroke: COLOURS[at % COLOURS.length], width: 1.5, dash }
}

function chosen({ actuators }: History, kind: Kind): Chosen {
  const k = actuators.length
  if (kind === 'latency') return { indices: [3 + 2 * k], series: [line('latency', 0)], unit: 'ms', factor: 1e3 }
  if (kind === 'iterations') return { indices: [4 + 2 * k], series: [line('a second', 0)], unit: '1/s', factor: 1 }
  if (kind === 'errors') {
    return { indices: [1 + 2 * k, 2 + 2 * k], series: [line('mean', 0), line('largest', 3)], unit: 'mm', factor: 1e3 }
  }
  const { unit, factor } = display(actuators[0]?.unit ?? '')
  return {
    indices: Array.from({ length: 2 * k }, (_, i) => 1 + ((i + k) % (2 * k))),
    series: [
      ...actuators.map(({ name }, i) => line(name, i, i < 8 ? undefined : [8, 3])),
      ...actuators.map(({ name }, i) => ({ ...line(`${name} cmd`, i, [3, 3]), width: 1 })),
    ],
    unit,
    factor,
  }
}
