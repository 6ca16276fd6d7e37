/** The stop: alive before anything heavy is asked for, without React, WebGL or the other sockets. */

import type { Stopped } from './protocol'
import { ReconnectingSocket } from './socket'
import { overallStatus } from './status'
import { note, useStore } from './store'

/** How long a stop may remain unanswered before the other way is tried, ms. */
const PATIENCE = 300
/** How long a stop may be under way until what the driver says counts alone, ms. */
const LONGEST = 15_000

let answered = true
let forget: ReturnType<typeof setTimeout> | undefined
const socket = new ReconnectingSocket('stop', { message: (data) => take(JSON.parse(String(data)) as Stopped) })

function take(stopped: Stopped): void {
  answered = true
  useStore.setState({ stopped })
  if (stopped.stage === 'unconfirmed') note('error', stopped.message, 'stop')
}

/** Stop every robot: on a socket of its own, and by a request where that does not answer. */
export function stop(): void {
  answered = false
  useStore.setState({ gestureEpoch: '', stopped: { type: 'stopped', stage: 'asked', message: '', seconds: 0 } })
  clearTimeout(forget)
  forget = setTimeout(() => useStore.setState({ stopped: null }), LONGEST)
  if (!socket.send('{"type":"stop"}')) void stopByRequest()
  else setTimeout(() => answered || void stopByRequest(), PATIENCE)
}

async function stopByRequest(): Promise<void> {
  try {
    const response = await fetch('stop', { method: 'POST', headers: { Accept: 'application/json' } })
    take((await response.json()) as Stopped)
  } catch {
    take({
      type: 'stopped',
      stage: 'unconfirmed',
      message: 'The stop did not reach the server. Cut the supply, or run ./softform stop.',
      seconds: 0,
    })
  }
}

function isWritten(target: EventTarget | null): boolean {
  if (target instanceof HTMLTextAreaElement) return true
  return target instanceof HTMLInputElement && /^(text|search|url)$/.test(target.type)
}

/** The space bar stops wherever the focus is, except in text; it presses no button, so both events are taken. */
function takeSpace(event: KeyboardEvent): void {
  if (event.code !== 'Space' || isWritten(event.target)) return
  event.preventDefault()
  event.stopImmediatePropagation()
  if (event.type === 'keydown' && !event.repeat) stop()
}

function showStatus(): void {
  const { connected, state, stopped } = useStore.getState()
  const status = overallStatus(connected, state?.robots ?? null, stopped)
  const output = document.getElementById('status')!
  if (output.dataset.tone !== status.tone) output.dataset.tone = status.tone
  const [word, detail] = output.children as unknown as HTMLElement[]
  if (word.textContent !== status.word) word.textContent = status.word
  if (detail.textContent !== status.detail) detail.textContent = status.detail
  output.title = status.detail
}

/** Bring button, space bar and status to life. */
export function startStop(): void {
  document.getElementById('stop-form')!.addEventListener('submit', (event) => {
    event.preventDefault()
    stop()
  })
  for (const type of ['keydown', 'keyup'] as const) window.addEventListener(type, takeSpace, { capture: true })
  useStore.subscribe(showStatus)
  showStatus()
  socket.connect()
}
