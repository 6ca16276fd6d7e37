import { useMemo, useEffect } from 'react'
import * as THREE from 'three'
import { millimetres } from '../quantities'
import { overallStatus } from '../status'
import { stop } from '../stop'
import { robotState, useStore, type Store } from '../store'

const WIDTH = 512
const HEIGHT = 256

/** A board beside the robot: how it is, how far its points are off, and a stop to press. */
export function Board() {
  const text = useStore(linesOf)
  const texture = useMemo(() => {
    const canvas = document.createElement('canvas')
    canvas.width = WIDTH
    canvas.height = HEIGHT
    const made = new THREE.CanvasTexture(canvas)
    made.colorSpace = THREE.SRGBColorSpace
    return made
  }, [])
  useEffect(() => {
    draw(texture.image as HTMLCanvasElement, text.split('\n'))
    texture.needsUpdate = true
  }, [texture, text])
  return (
    <group position={[-0.45, 0.15, 0.05]} rotation={[0, 0.5, 0]}>
      <mesh raycast={() => undefined}>
        <planeGeometry args={[0.32, 0.16]} />
        <meshBasicMaterial map={texture} />
      </mesh>
      <mesh name="vr-stop" position={[0, -0.15, 0]} pointerEventsOrder={2} onPointerDown={(event) => (event.stopPropagation(), stop())}>
        <boxGeometry args={[0.32, 0.1, 0.03]} />
        <meshBasicMaterial color="#c4122f" />
      </mesh>
      <StopLabel />
    </group>
  )
}

function StopLabel() {
  const texture = useMemo(() => {
    const canvas = document.createElement('canvas')
    canvas.width = 256
    canvas.height = 80
    const pen = canvas.getContext('2d')!
    pen.fillStyle = '#c4122f'
    pen.fillRect(0, 0, 256, 80)
    pen.fillStyle = '#fff'
    pen.font = '800 60px system-ui, sans-serif'
    pen.textAlign = 'center'
    pen.fillText('STOP', 128, 62)
    const made = new THREE.CanvasTexture(canvas)
    made.colorSpace = THREE.SRGBColorSpace
    return made
  }, [])
  return (
    <mesh position={[0, -0.15, 0.016]} raycast={() => undefined}>
      <planeGeometry args={[0.25, 0.08]} />
      <meshBasicMaterial map={texture} />
    </mesh>
  )
}

function linesOf(store: Store): string {
  const status = overallStatus(store.connected, store.state?.robots ?? null, store.stopped)
  const robot = robotState(store)
  const off = robot?.servo?.mean_error != null ? `Points off by ${millimetres(robot.servo.mean_error)}` : ''
  return [status.word, off || status.detail.slice(0, 44), 'Trigger: pick, pull', 'Stick: push, pull · Squeeze: remove'].join('\n')
}

function draw(canvas: HTMLCanvasElement, lines: string[]): void {
  const pen = canvas.getContext('2d')!
  pen.fillStyle = '#1b2029'
  pen.fillRect(0, 0, WIDTH, HEIGHT)
  lines.forEach((line, k) => {
    pen.fillStyle = k < 2 ? '#e9edf3' : '#a3adbb'
    pen.font = k === 0 ? '700 52px system-ui, sans-serif' : '28px system-ui, sans-serif'
    pen.fillText(line, 24, [66, 122, 182, 224][k])
  })
}
