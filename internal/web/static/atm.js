// Keeps a page up to date. Without this script a page shows what was so when it was loaded.
'use strict'
;(() => {
  const body = document.body
  const offline = document.getElementById('offline')
  const waits = document.getElementById('waits')
  const channel = new BroadcastChannel('atm')
  const live = () => document.getElementById('live')
  const shown = () => Number(live().dataset.version) // of the room, as this page shows it
  let isFetching = false
  let said = null // by the stream, last
  const screens = new Set() // that have changed
  let hiddenUntil = 0 // a page that nobody sees follows slowly, for its title

  // The regions of a page are fetched again on these events: see hx-trigger.
  const fire = name => body.dispatchEvent(new CustomEvent(name))

  let timer
  const refresh = () => {
    clearTimeout(timer)
    const isBehind = said && said.version && (screens.size > 0 || live() && said.version > shown())
    if (isBehind) timer = setTimeout(refresh, 500) // again, until it is not; while nothing happens nothing runs
    else waits.hidden = true
    if (!isBehind || document.readyState !== 'complete' || document.hidden && Date.now() < hiddenUntil) return
    hiddenUntil = Date.now() + 5000
    screens.forEach(name => fire('atm-screen-' + name))
    screens.clear()
    // What is pointed at stays where it is: nobody is to press another button than the one that was there.
    const isNewer = live() && !isFetching && said.version > shown()
    waits.hidden = !isNewer || !document.querySelector('.answers:hover')
    if (isNewer && waits.hidden) fire('atm-change') // where htmx does not hear it yet, once more above
  }
  body.addEventListener('htmx:beforeRequest', ({ detail }) => {
    if (detail.requestConfig.elt.id === 'live') isFetching = true
  })
  body.addEventListener('htmx:afterRequest', ({ detail }) => {
    if (detail.requestConfig.elt.id !== 'live') return
    if (detail.xhr.status === 404) location.reload() // its member was retired: the page says so
    offline.hidden = detail.successful && Boolean(said.version)
    if (detail.successful) isFetching = false
    else setTimeout(() => { isFetching = false }, 3000) // and then once more
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
  const hear = update => {
    said = update
    if (!isFetching) offline.hidden = Boolean(update.version)
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

  // What is being written stays with its page, whatever button leads away from it, until its form was sent.
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
  if (here.searchParams.has('done')) { // and not what went wrong
    here.searchParams.delete('done') // a page that is loaded again does not say it again
    history.replaceState(null, '', here)
    for (const key of JSON.parse(sessionStorage.getItem('atm sent') || '[]')) sessionStorage.removeItem(key)
  }
  sessionStorage.removeItem('atm sent')
  restore()
  body.addEventListener('htmx:afterSwap', restore)

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
