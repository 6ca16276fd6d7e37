import { useEffect, useMemo } from 'react'
import * as THREE from 'three'
import type { Contact } from '../protocol'
import { robotInfo, robotState, useStore } from '../store'
import { useWriting } from './writing'

const NONE: Contact[] = []
const WEAK = new THREE.Color('#f0b429')
const STRONG = new THREE.Color('#d7263d')
/** Size of a label, m as `useWriting` counts. */
const WIDTH = 0.2
const HEIGHT = 0.1

/** Where the model touches something: points, an arrow along each force on the robot, and its newtons. */
export function Contacts() {
  const visible = useStore((store) => store.layers.contact)
  const contacts = useStore((store) => robotState(store)?.contacts ?? NONE)
  const size = useStore((store) => robotInfo(store)?.size ?? 0.3)
  return visible && contacts.map((contact) => <Touch key={contact.name} contact={contact} size={size} />)
}

function Touch({ contact: { name, newtons, points, place, end, share }, size }: { contact: Contact; size: number }) {
  const colour = useMemo(() => WEAK.clone().lerp(STRONG, share), [share])
  const geometry = useMemo(
    () => new THREE.BufferGeometry().setAttribute('position', new THREE.Float32BufferAttribute(points.flat(), 3)),
    [points],
  )
  useEffect(() => () => geometry.dispose(), [geometry])
  const [from, way] = [new THREE.Vector3(...place), new THREE.Vector3(...end).sub(new THREE.Vector3(...place))]
  const arrow = useMemo(() => new THREE.ArrowHelper(), [])
  useEffect(() => () => arrow.dispose(), [arrow])
  const head = Math.min(0.05 * size, 0.5 * way.length())
  arrow.position.copy(from)
  arrow.setDirection(way.clone().normalize())
  arrow.setLength(Math.max(way.length(), 1e-6), head, 0.6 * head)
  arrow.setColor(colour)
  for (const part of [arrow.line, arrow.cone]) {
    part.renderOrder = 3
    Object.assign(part.material, { depthTest: false, transparent: true })
  }
  const texture = useWriting(`${newtons} N\n${name}`, WIDTH, HEIGHT, '#1b2029')
  return (
    <>
      <points geometry={geometry} frustumCulled={false} renderOrder={3} raycast={nothing}>
        <pointsMaterial size={6} sizeAttenuation={false} color={colour} depthTest={false} transparent />
      </points>
      {share > 0 && <primitive object={arrow} raycast={nothing} />}
      <sprite
        position={end}
        scale={[0.2 * size, (0.2 * size * HEIGHT) / WIDTH, 1]}
        center={[0, 0]}
        renderOrder={4}
        raycast={nothing}
      >
        <spriteMaterial map={texture} depthTest={false} />
      </sprite>
    </>
  )
}

const nothing = () => undefined
