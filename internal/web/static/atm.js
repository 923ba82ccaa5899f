// Keeps a page up to date. Without this script a page shows what was so when it was loaded.
'use strict'
;(() => {
  const body = document.body
  const offline = document.getElementById('offline')
  const channel = new BroadcastChannel('atm')
  let shown = Number(body.dataset.version) // of the room, as this page shows it
  let said = null // by the stream, last
  const screens = new Set() // that have changed
  let hiddenUntil = 0 // a page that nobody sees follows slowly, for its title

  // The regions of a page are fetched again on these events: see hx-trigger.
  const fire = name => body.dispatchEvent(new CustomEvent(name))

  const refresh = () => {
    if (!said || !said.version || document.hidden && Date.now() < hiddenUntil) return
    hiddenUntil = Date.now() + 5000
    screens.forEach(name => fire('atm-screen-' + name))
    screens.clear()
    // What is pointed at stays where it is: nobody is to press another button than the one that was there.
    if (said.version === shown || document.querySelector('.answers:hover')) return
    shown = said.version
    fire('atm-change')
  }
  setInterval(refresh, 500)
  const hear = update => {
    said = update
    offline.hidden = Boolean(update.version)
    for (const name of update.screens || []) screens.add(name)
    refresh()
  }
  document.addEventListener('visibilitychange', refresh)

  channel.onmessage = ({ data }) => {
    if (!data.ask) hear(data)
    else if (isTeller && said) channel.postMessage({ ...said, screens: [] })
  }

  // One page of the browser holds the connection and tells the others; when it goes, another one takes over.
  let isTeller = false
  const tell = update => { hear(update); channel.postMessage(update) }
  navigator.locks.request('atm', () => new Promise(() => {
    isTeller = true
    const stream = new EventSource('/stream')
    stream.onmessage = event => tell(JSON.parse(event.data))
    stream.onerror = () => tell({})
  }))
  channel.postMessage({ ask: true })

  // Ages grow while nothing happens.
  const units = [[172800, 86400, 'd'], [3600, 3600, 'h'], [60, 60, 'm'], [0, 1, 's']]
  setInterval(() => {
    for (const time of document.querySelectorAll('time[data-age]')) {
      const seconds = Math.max(0, Math.floor((Date.now() - Date.parse(time.dateTime)) / 1000))
      const [, size, unit] = units.find(([from]) => seconds >= from)
      time.textContent = Math.floor(seconds / size) + unit + time.dataset.age
    }
  }, 10000)
})()
