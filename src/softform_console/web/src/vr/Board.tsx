import type { ThreeEvent } from '@react-three/fiber'
import { millimetres } from '../quantities'
import { useWriting } from '../scene/writing'
import { overallStatus } from '../status'
import { stop } from '../stop'
import { robotInfo, robotState, useStore, type Store } from '../store'

/** A board beside the robot: how it is, how far its points are off, and a stop to press. */
export function Board() {
  const text = useStore(linesOf)
  const size = useStore((store) => robotInfo(store)?.size ?? 0.3)
  return (
    <group position={[-0.5 * size - 0.18, 0.2, 0]} rotation={[0, 0.5, 0]}>
      <Label text={text} width={0.32} height={0.16} ground="#1b2029" />
      <group position={[0, -0.15, 0]}>
        <mesh name="vr-stop" pointerEventsOrder={2} onPointerDown={press}>
          <boxGeometry args={[0.32, 0.1, 0.03]} />
          <meshBasicMaterial color="#c4122f" />
        </mesh>
        <group position={[0, 0, 0.016]}>
          <Label text="STOP" width={0.2} height={0.1} ground="#c4122f" />
        </group>
      </group>
    </group>
  )
}

function press(event: ThreeEvent<PointerEvent>): void {
  event.stopPropagation()
  stop()
}

/** Lines of text on a plane, the first one large; sizes m. */
function Label({ text, width, height, ground }: { text: string; width: number; height: number; ground: string }) {
  const texture = useWriting(text, width, height, ground)
  return (
    <mesh raycast={() => undefined}>
      <planeGeometry args={[width, height]} />
      <meshBasicMaterial map={texture} />
    </mesh>
  )
}

function linesOf(store: Store): string {
  const status = overallStatus(store.connected, store.state?.robots ?? null, store.stopped)
  const robot = robotState(store)
  const off = robot?.servo?.mean_error != null ? `Points off by ${millimetres(robot.servo.mean_error)}` : ''
  return [
    status.word,
    off || status.detail.slice(0, 44),
    'Trigger: pick, pull',
    'Stick: push, pull · Squeeze: remove',
  ].join('\n')
}
