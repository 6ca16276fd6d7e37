import './styles/base.css'
import './styles/scene.css'
import './styles/panel.css'
import './styles/layout.css'
import { startControl } from './control'
import { startStop } from './stop'
import { startTheme } from './theme'

// The order matters: the stop and the beats live before anything heavy is asked for.
startTheme()
startStop()
startControl()
void import('./app').then((app) => app.mount(document.getElementById('root')!))
