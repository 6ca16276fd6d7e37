import { useEffect, useState } from 'react'
import { send } from '../control'
import { mayOperate } from '../steering'
import { useStore } from '../store'

/** What the server answers to GET, as long as it is looked at: once, or every `period` ms; null before it does. */
export function useAnswer<T>(path: string, period?: number): T | null {
  const [answer, setAnswer] = useState<T | null>(null)
  useEffect(() => {
    const ask = () =>
      void fetch(path)
        .then((response) => response.json() as Promise<T>)
        .then(setAnswer)
        .catch(() => {}) // the server is away: the page says so elsewhere
    ask()
    const timer = period && setInterval(ask, period)
    return () => clearInterval(timer)
  }, [path, period])
  return answer
}

const two = (value: number) => String(value).padStart(2, '0')

/** A time as people read it, such as 1:02:03 or 0:09. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds))
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60]
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`
}

/** A size of bytes as people read it. */
export function size(bytes: number): string {
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(1)} kB`
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`
}

/** Address of a file below the folder of runs. */
export function address(path: string): string {
  return `runs/${path.split('/').map(encodeURIComponent).join('/')}`
}

/** Start a command as a job; the operator may. */
export function startJob(command: string, words: string[]): void {
  if (mayOperate()) {
    send({ type: 'start_job', epoch: useStore.getState().gestureEpoch || '0', command, arguments: words })
  }
}
