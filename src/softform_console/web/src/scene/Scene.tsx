import { Canvas, useThree } from '@react-three/fiber'
import { noEvents, PointerEvents, XR } from '@react-three/xr'
import { useEffect, useRef } from 'react'
import { useStore as useStoreOf } from 'zustand'
import type * as THREE from 'three'
import { niceTop } from '../colours'
import { robotInfo, useStore } from '../store'
import { useThemeColour } from '../theme'
import { Board } from '../vr/Board'
import { Hands } from '../vr/Hands'
import { vr } from '../vr/session'
import { Captured } from './Captured'
import { Contacts } from './Contacts'
import { connectDrags, endDrags } from './drag'
import { Frames } from './Frames'
import { Motion } from './Motion'
import { graphics } from './picker'
import { onPicture } from './picture'
import { Pins } from './Pins'
import { Probe } from './Probe'
import { isSoftwareRendered } from './renderer'
import { RobotSurface } from './RobotSurface'
import { View } from './View'

/** Draws a second where the processor draws: more would hold back what the operator does. */
const SOFTWARE_RATE = 10
/** Time between two of them, in durations of one: beats and what the operator does come first. */
const SHARE = 5
/** Period of asking whether a picture is drawn, ms. */
const FENCE_PERIOD = 10
/** Where the robot stands before somebody who wears a headset, m. */
const IN_FRONT: [number, number, number] = [0, 0.95, -0.6]

/** The robot in 3D; the world's y is up, the robot's z is. */
export default function Scene() {
  const software = isSoftwareRendered()
  const background = useThemeColour('--scene')
  const immersed = useStoreOf(vr, (state) => state.session !== undefined)
  return (
    <Canvas
      frameloop={software && !immersed ? 'never' : 'demand'}
      dpr={software ? 1 : [1, 2]}
      camera={{ position: [0.3, 0.35, 0.5], fov: 38, near: 0.005, far: 20 }}
      events={noEvents}
      gl={{ antialias: !software }}
      flat
      onCreated={({ gl }) => {
        gl.localClippingEnabled = true
        graphics.renderer = !software && gl.extensions.has('EXT_color_buffer_float') ? gl : null
      }}
    >
      <color attach="background" args={[background]} />
      <XR store={vr}>
        <PointerEvents batchEvents={false} />
        <hemisphereLight args={['#ffffff', '#b8c0cc', 1.9]} />
        <directionalLight position={[0.5, 1.6, 0.8]} intensity={1.9} />
        <group position={immersed ? IN_FRONT : [0, 0, 0]}>
          <RobotFrame />
          {immersed && <Board />}
        </group>
        {immersed ? <Hands /> : <View />}
        {!immersed && <Redraw rate={software ? SOFTWARE_RATE : null} />}
        <Probe />
      </XR>
    </Canvas>
  )
}

function RobotFrame() {
  const frame = useRef<THREE.Group>(null)
  const stopped = useStore((store) => store.stopped)
  const over = useStore((store) => store.state?.operator !== 'you' || store.gestureEpoch === '')
  useEffect(() => connectDrags(null, frame.current), [])
  useEffect(() => {
    if (stopped || over) endDrags()
  }, [stopped, over])
  return (
    <group ref={frame} rotation={[-Math.PI / 2, 0, 0]}>
      <Ground />
      <RobotSurface />
      <Captured />
      <Contacts />
      <Frames />
      <Motion />
      <Pins />
    </group>
  )
}

/** A grid under the robot, with cells of about an eighth of its size. */
function Ground() {
  const visible = useStore((store) => store.layers.grid)
  const size = useStore((store) => robotInfo(store)?.size ?? 0.3)
  const colour = useThemeColour('--grid')
  const cell = niceTop(size / 8)
  if (!visible) return null
  return (
    <gridHelper
      key={colour}
      args={[20 * cell, 20, colour, colour]}
      rotation={[Math.PI / 2, 0, 0]}
      position={[0, 0, -0.02 * size]}
      raycast={() => undefined}
    />
  )
}

/** Draws when something has changed; where the processor draws, only so often. */
function Redraw({ rate }: { rate: number | null }) {
  const { advance, invalidate, gl } = useThree()
  useEffect(() => {
    if (rate === null) {
      const ends = [onPicture(() => invalidate()), useStore.subscribe(() => invalidate())]
      return () => ends.forEach((end) => end())
    }
    let changed = true
    const touch = () => void (changed = true)
    const ends = [onPicture(touch), useStore.subscribe(touch)]
    const moves = ['pointermove', 'pointerdown', 'wheel', 'keydown'] as const
    for (const kind of moves) window.addEventListener(kind, touch, { passive: true })
    let timer: ReturnType<typeof setTimeout>
    const context = gl.getContext() as WebGL2RenderingContext
    const draw = () => {
      const begun = performance.now()
      // What drawing takes in the browser's other process counts, too; beats go on while it is waited for.
      const rest = (fence: WebGLSync | null) => {
        if (fence && context.getSyncParameter(fence, context.SYNC_STATUS) === context.UNSIGNALED) {
          timer = setTimeout(rest, FENCE_PERIOD, fence)
          return
        }
        context.deleteSync(fence)
        timer = setTimeout(draw, Math.max(1e3 / rate, SHARE * (performance.now() - begun)))
      }
      if (!changed) return rest(null)
      changed = false
      advance(begun / 1e3)
      const fence = context.fenceSync(context.SYNC_GPU_COMMANDS_COMPLETE, 0)
      context.flush()
      rest(fence)
    }
    draw()
    return () => {
      clearTimeout(timer)
      ends.forEach((end) => end())
      for (const kind of moves) window.removeEventListener(kind, touch)
    }
  }, [rate, advance, invalidate, gl])
  return null
}
