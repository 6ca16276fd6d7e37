import type { RobotState } from '../protocol'

/** Rows that are kept: ten minutes at 10 Hz. */
const LONGEST = 6000

/** What is plotted, in columns of equal length: the first is time, s since the epoch; null where it is not known. */
export type Columns = (number | null)[][]

/** The past of a robot's values, SI. */
export class History {
  readonly names: string[]
  private readonly rows: (number | null)[][] = []
  private iterations: { stamp: number; count: number } | null = null

  constructor(readonly actuators: { name: string; unit: string }[]) {
    this.names = [
      'time s',
      ...actuators.map(({ name, unit }) => `${name} commanded ${unit}`),
      ...actuators.map(({ name, unit }) => `${name} measured ${unit}`),
      'mean error m',
      'largest error m',
      'latency s',
      'iterations a second',
    ]
  }

  /** Note the state of a moment, s since the epoch. */
  push(stamp: number, { commanded, measured, servo }: RobotState): void {
    const values = (list: number[] | null) => this.actuators.map((_, k) => list?.[k] ?? null)
    const errors = [
      servo?.mean_error ?? null,
      servo?.max_error ?? null,
      servo?.latency ?? null,
      this.rate(stamp, servo),
    ]
    this.rows.push([stamp, ...values(commanded), ...values(measured), ...errors])
    if (this.rows.length > LONGEST) this.rows.splice(0, this.rows.length - LONGEST)
  }

  private rate(stamp: number, servo: RobotState['servo']): number | null {
    const before = this.iterations
    this.iterations = servo && { stamp, count: servo.iterations }
    if (!before || !servo || servo.iterations < before.count) return null
    return (servo.iterations - before.count) / (stamp - before.stamp)
  }

  /** Columns by index, each value times `factor` but for time. */
  columns(indices: number[], factor: number): Columns {
    const scaled = (value: number | null) => (value === null ? null : value * factor)
    return [this.rows.map((row) => row[0]), ...indices.map((index) => this.rows.map((row) => scaled(row[index])))]
  }

  /** All of it as a table, SI, one row a moment. */
  csv(): string {
    const lines = this.rows.map((row) => row.map((value) => (value === null ? '' : String(value))).join(','))
    return `${[this.names.join(','), ...lines].join('\n')}\n`
  }
}
