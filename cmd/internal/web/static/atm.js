// Keeps a page up to date. Without this script a page stays as it was loaded.
'use strict'
;(() => {
  const body = document.body
  const server = new URL(document.currentScript.src).search // that this page comes from
  const offline = document.getElementById('offline')
  const waits = document.getElementById('waits')
  const channel = new BroadcastChannel('atm')
  const live = () => document.getElementById('live')
  const shown = () => Number(live().dataset.version) // of the room, as this page shows it
  let isFetching = false
  let latest = null // the stream's last event
  const screens = new Set() // the changed ones
  let hiddenUntil = 0 // a hidden page follows slowly, for its title

  // The regions of a page are loaded again on these events: see hx-trigger.
  const fire = name => body.dispatchEvent(new CustomEvent(name))

  let timer
  const refresh = () => {
    clearTimeout(timer)
    const isBehind = latest && latest.version && (screens.size > 0 || live() && latest.version > shown())
    if (isBehind) timer = setTimeout(refresh, 500) // until it is not; an idle page runs nothing
    else waits.hidden = true
    if (!isBehind || document.readyState !== 'complete' || document.hidden && Date.now() < hiddenUntil) return
    hiddenUntil = Date.now() + 5000
    screens.forEach(name => fire('atm-screen-' + name))
    screens.clear()
    // Buttons under the pointer stay in place, so that nobody presses another one by mistake.
    const isNewer = live() && !isFetching && latest.version > shown()
    waits.hidden = !isNewer || !document.querySelector('.answers:hover')
    if (isNewer && waits.hidden) fire('atm-change') // if htmx misses it, the timer above fires it again
  }
  body.addEventListener('htmx:beforeRequest', ({ detail }) => {
    if (detail.requestConfig.elt.id === 'live') isFetching = true
  })
  body.addEventListener('htmx:afterRequest', ({ detail }) => {
    if (detail.requestConfig.elt.id !== 'live') return
    if (detail.xhr.status === 404) location.reload() // the member was retired, as the new page says
    offline.hidden = detail.successful && Boolean(latest.version)
    if (detail.successful) isFetching = false
    else setTimeout(() => { isFetching = false }, 3000) // then it retries
  })

  // A button that has just moved under the pointer cannot be pressed yet.
  const questions = () => [...document.querySelectorAll('.question .answers > details')].map(one => one.id).join()
  let asked = questions()
  body.addEventListener('htmx:afterSwap', () => {
    if (asked === questions()) return
    asked = questions()
    body.classList.add('moved')
    setTimeout(() => body.classList.remove('moved'), 400)
  })
  const handle = update => {
    latest = update
    if (!isFetching) offline.hidden = Boolean(update.version)
    for (const name of update.screens || []) screens.add(name)
    refresh()
  }
  document.addEventListener('visibilitychange', refresh)

  channel.onmessage = ({ data }) => {
    if (!data.ask) handle(data)
    else if (isConnected && latest) channel.postMessage({ ...latest, screens: [] })
  }

  // One page of the browser holds the connection and passes events to the others. Once it is closed, another takes over.
  let isConnected = false
  const share = update => { handle(update); channel.postMessage(update) }
  navigator.locks.request('atm', () => new Promise(() => {
    isConnected = true
    const stream = new EventSource('/stream' + server)
    stream.onmessage = event => share(JSON.parse(event.data))
    stream.onerror = () => {
      share({})
      // A server that was started since refuses this page, which must not keep its pages from connecting.
      if (stream.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 1000)
    }
  }))
  channel.postMessage({ ask: true })

  // A text that is being written is kept for its page until its form was sent, whatever button is pressed.
  const keyOf = field => 'atm ' + location.pathname + ' ' + field.id
  const isKept = field => field.matches('textarea[name], #to')
  const restore = () => {
    for (const field of document.querySelectorAll('textarea[name], #to')) {
      const text = sessionStorage.getItem(keyOf(field))
      if (!text || field.value) continue
      field.value = text
      const details = field.closest('details')
      if (details) details.open = true
    }
  }
  body.addEventListener('input', ({ target }) => {
    if (isKept(target)) sessionStorage.setItem(keyOf(target), target.value)
  })
  body.addEventListener('submit', ({ target }) => {
    sessionStorage.setItem('atm sent', JSON.stringify([...target.elements].filter(isKept).map(keyOf)))
  })
  const here = new URL(location)
  if (here.searchParams.has('done')) { // the form succeeded
    here.searchParams.delete('done') // so that reloading does not show the result again
    history.replaceState(null, '', here)
    for (const key of JSON.parse(sessionStorage.getItem('atm sent') || '[]')) sessionStorage.removeItem(key)
  }
  sessionStorage.removeItem('atm sent')
  restore()
  body.addEventListener('htmx:afterSwap', restore)

  // Ages grow without any event.
  const units = [[172800, 86400, 'd'], [3600, 3600, 'h'], [60, 60, 'm'], [0, 1, 's']]
  setInterval(() => {
    for (const time of document.querySelectorAll('time[data-age]')) {
      const seconds = Math.max(0, Math.floor((Date.now() - Date.parse(time.dateTime)) / 1000))
      const [, size, unit] = units.find(([from]) => seconds >= from)
      time.textContent = Math.floor(seconds / size) + unit + time.dataset.age
    }
  }, 10000)
})()
