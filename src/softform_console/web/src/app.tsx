import { lazy, StrictMode, Suspense, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { ErrorBoundary } from './ErrorBoundary'
import { startKeys } from './keys'
import { startGestures } from './steering'
import { Jobs } from './jobs/Jobs'
import { Legend } from './Legend'
import { Notes } from './Notes'
import { Panel } from './panel/Panel'
import { Plots } from './plots/Plots'
import { startScene } from './scene/picture'
import { hasWebGL } from './scene/renderer'
import { Hint } from './Hint'
import { Toolbar, ViewTools } from './Toolbar'

// Asked for before WebGL is probed: the probe waits for the browser's graphics process.
const scene = import('./scene/Scene')
const Scene = lazy(() => scene)

/** Show the page in an element. */
export function mount(root: HTMLElement): void {
  startScene()
  startKeys()
  startGestures()
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  )
}

function App() {
  const [open, setOpen] = useState(true)
  const [webgl] = useState(hasWebGL)
  return (
    <div className="app" data-panel={open ? 'open' : 'closed'}>
      <Toolbar />
      <main className="scene" aria-label="The robot in 3D">
        {webgl ? (
          <ErrorBoundary fallback={<NoPicture text="The 3D picture has failed. Reload the page to have it again." />}>
            <Suspense fallback={<NoPicture text="Loading the picture …" />}>
              <Scene />
            </Suspense>
          </ErrorBoundary>
        ) : (
          <NoPicture text="This browser does not draw in 3D (no WebGL 2)." />
        )}
        <ViewTools />
        <Hint picture={webgl} />
        {webgl && <Legend />}
        <Notes />
      </main>
      <div className="below">
        <Plots />
        <Jobs />
      </div>
      <Panel open={open} onToggle={() => setOpen(!open)} />
    </div>
  )
}

function NoPicture({ text }: { text: string }) {
  return <p className="plain">{text} STOP, sliders and points by numbers work without it.</p>
}
