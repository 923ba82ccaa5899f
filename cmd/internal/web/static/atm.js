// Keeps a page up to date, and sends its forms without leaving it. Without this script a page stays as it was loaded.
'use strict'
;(() => {
  const body = document.body
  const server = new URL(document.currentScript.src).search // that this page comes from
  const byID = id => document.getElementById(id)
  const offline = byID('offline')
  const waits = byID('waits')
  const outcome = byID('outcome') // the result of the last form, and how to undo it
  const result = byID('result')
  const news = byID('news') // what a screen reader says of it
  const channel = new BroadcastChannel('atm')
  const shown = () => Number(byID('live').dataset.version) // of the room, as this page shows it
  let isFetching = false
  let latest = null // the stream's last event
  const screens = new Set() // the changed ones
  let hiddenUntil = 0 // a hidden page follows slowly, for its title

  const load = async (path, options) => {
    const answer = await fetch(path, { ...options, signal: AbortSignal.timeout(60000) })
    return [answer, new DOMParser().parseFromString(await answer.text(), 'text/html')]
  }

  // A region is a child of an element with data-live. It is replaced only if what the server says of it has changed: so
  // what one reads stays where it is, also what one has selected. The page's own copy has open boxes, texts and ages.
  const regions = 'data-live' // may be nested
  const sources = new WeakMap() // what the server said of each region
  const timed = root => [...root.querySelectorAll('[data-now]')].filter(one => { // what time alone changes
    const inner = one.closest(`[${regions}]`)
    return !inner || !root.contains(inner)
  })
  const sourceOf = region => {
    const copy = region.cloneNode(true)
    for (const one of timed(copy)) one.textContent = ''
    for (const one of copy.querySelectorAll(`[${regions}]`)) one.replaceChildren()
    for (const one of copy.querySelectorAll('[name=page]')) one.removeAttribute('value')
    for (const one of copy.querySelectorAll('[disabled]')) one.removeAttribute('disabled') // while it is offline
    return copy.outerHTML
  }
  const remember = root => {
    for (const region of root.querySelectorAll(`[${regions}] > *`)) sources.set(region, sourceOf(region))
  }

  // keep takes over what a person has opened, typed and scrolled.
  const keep = (old, newer) => {
    for (const box of old.querySelectorAll('details[id][open]')) {
      const next = newer.querySelector('#' + CSS.escape(box.id))
      if (next && box.querySelector('form')) next.replaceWith(box)
      else if (next) next.open = true
    }
    for (const one of old.querySelectorAll('[id][tabindex]')) {
      const next = newer.querySelector('#' + CSS.escape(one.id))
      if (next) [next.scrollLeft, next.scrollTop] = [one.scrollLeft, one.scrollTop]
    }
  }

  const merge = (old, newer) => {
    for (const one of [...old.children]) if (!one.id || !newer.children.namedItem(one.id)) one.remove()
    let place = old.firstElementChild
    for (const region of [...newer.children]) {
      const known = region.id ? old.children.namedItem(region.id) : null
      const source = sourceOf(region)
      if (known && sources.get(known) === source) {
        const now = timed(region)
        timed(known).forEach((one, i) => { if (one.innerHTML !== now[i].innerHTML) one.replaceChildren(...now[i].childNodes) })
        if (known === place) place = place.nextElementSibling
        else old.insertBefore(known, place)
        continue
      }
      sources.set(region, source)
      remember(region)
      old.insertBefore(region, place)
      if (known) {
        keep(known, region)
        if (known === place) place = known.nextElementSibling
        known.remove()
      }
    }
  }

  // show makes this page what its newer version is. The row under the pointer stays there, if the page can be scrolled.
  const show = page => {
    const focus = document.activeElement
    const { id, selectionStart, selectionEnd } = focus
    const row = hasPointer && document.querySelector('.list li:hover')
    const place = row && row.getBoundingClientRect().top
    for (const newer of page.querySelectorAll(`[${regions}]`)) {
      const old = byID(newer.id)
      if (old && old !== newer) merge(old, newer)
    }
    const version = page.getElementById('live')?.dataset.version
    if (version) byID('live').dataset.version = version // last: what is shown in part only is loaded again
    document.title = page.title
    if (byID('unread') && page.getElementById('unread')) byID('unread').replaceChildren(...page.getElementById('unread').childNodes)
    if (typeof id === 'string' && id && focus !== document.activeElement && byID(id)) {
      byID(id).focus({ preventScroll: true })
      if (typeof selectionStart === 'number') byID(id).setSelectionRange(selectionStart, selectionEnd)
    }
    restore()
    if (row && byID(row.id)) scrollBy({ top: byID(row.id).getBoundingClientRect().top - place, behavior: 'instant' })
    guard()
  }

  const setOffline = isOffline => {
    offline.hidden = !isOffline
    for (const button of document.querySelectorAll('form[method=post] button')) button.disabled = isOffline
  }

  const update = async isWanted => {
    if (isFetching) return
    isFetching = true
    try {
      const [answer, page] = await load(location.pathname + location.search)
      if (answer.status === 404) return location.reload() // the member was retired, as the new page says
      if (!answer.ok) throw new Error(answer.statusText)
      if (isWanted || !isAimed()) show(page)
      setOffline(!latest || !latest.version)
      isFetching = false
    } catch {
      setOffline(true)
      setTimeout(() => { isFetching = false }, 3000) // then it is tried again
    }
  }

  const updateScreen = async name => {
    const screen = byID('screen')
    if (!screen || screen.dataset.of !== name) return
    try {
      const [answer, page] = await load(screen.dataset.from)
      if (answer.ok && screen.innerHTML !== page.body.innerHTML) screen.replaceChildren(...page.body.childNodes)
    } catch { /* as the notice says */ }
  }

  let timer
  const refresh = () => {
    clearTimeout(timer)
    const isBehind = latest && latest.version && (screens.size > 0 || byID('live') && latest.version > shown())
    if (isBehind) timer = setTimeout(refresh, 500) // until it is not; an idle page runs nothing
    else waits.hidden = true
    if (!isBehind || document.readyState !== 'complete' || document.hidden && Date.now() < hiddenUntil) return
    hiddenUntil = Date.now() + 5000
    screens.forEach(updateScreen)
    screens.clear()
    const isNewer = byID('live') && !isFetching && latest.version > shown()
    waits.hidden = !isNewer || !isAimed()
    if (isNewer && waits.hidden) update()
  }
  // Buttons under the pointer stay in place, so that nobody presses another one by mistake. After a tap nothing is
  // pointed at, though :hover stays.
  let hasPointer = false // one that hovers
  let isPressed = false
  const isAimed = () => isPressed || hasPointer && document.querySelector(':is(.answers, .list form, .write button):hover')
  for (const kind of ['pointermove', 'pointerdown', 'pointerup', 'pointercancel']) {
    addEventListener(kind, event => {
      hasPointer = event.pointerType !== 'touch'
      if (kind !== 'pointermove') isPressed = kind === 'pointerdown'
    })
  }
  waits.querySelector('a').addEventListener('click', event => {
    event.preventDefault()
    waits.hidden = true
    update(true)
  })

  // What has just moved under the pointer cannot be pressed yet.
  const rows = () => [...document.querySelectorAll('.question, .list li')].map(one => one.id)
  let known = rows()
  let settles
  const guard = () => {
    const before = known
    known = rows()
    if (known.join() === before.join()) return
    const asked = known.filter(id => !before.includes(id) && byID(id).matches('.question')).map(id => byID(id).querySelector('h3'))
    news.textContent = asked.map(one => [...one.childNodes].slice(0, 2).map(part => part.textContent).join('').trim()).join('. ')
    body.classList.add('moved')
    clearTimeout(settles)
    settles = setTimeout(() => body.classList.remove('moved'), 400)
  }
  const handle = update => {
    latest = update
    if (!isFetching) setOffline(!update.version)
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

  // A form is sent from where it is: its result is said there, and what was typed stays until it has succeeded.
  let silence
  const quieten = () => {
    if (outcome.matches(':hover, :focus-within')) silence = setTimeout(quieten, 2000)
    else say('', null)
  }
  const say = (text, undo) => {
    result.textContent = text
    outcome.querySelector('form')?.remove()
    if (undo) outcome.append(undo.closest('form'))
    outcome.classList.add('floats')
    clearTimeout(silence)
    if (text) silence = setTimeout(quieten, 15000)
  }
  const complain = (form, text) => {
    let problem = form.querySelector('[role=alert]')
    if (!problem) {
      problem = document.createElement('p')
      problem.setAttribute('role', 'alert')
      problem.className = 'notice bad'
      form.append(problem)
    }
    problem.textContent = text
    if (!outcome.contains(form)) say('', null) // of an earlier one
  }
  const textsOf = (page, ...ids) => ids.map(id => page.getElementById(id)).filter(Boolean).map(one => one.textContent.trim()).filter(Boolean).join('. ')

  // nextTo returns what gets the focus after a form: in its row if that stays, else in the row that takes its place. It is
  // a link or what opens a box, never a button that would act.
  const nextTo = form => {
    const row = form.closest('.list > li, article')
    if (!row) return () => form.closest('details')?.querySelector('summary') ?? byID('to-' + form.elements.id?.value) // the row that has come back
    const list = row.parentElement.id
    const all = [...row.parentElement.children]
    const at = all.indexOf(row)
    const ids = [row, ...all.slice(at + 1), ...all.slice(0, at).reverse()].map(one => one.id)
    return () => {
      const next = ids.map(byID).find(one => one && one.parentElement.id === list)
      return next && next.querySelector('a[id], summary')
    }
  }

  body.addEventListener('submit', async event => {
    const form = event.target
    if (!form.matches('[method=post]')) return
    event.preventDefault()
    if (form.dataset.busy) return
    form.dataset.busy = 'true'
    const fields = new FormData(form)
    const data = form.enctype === 'multipart/form-data' ? fields : new URLSearchParams(fields)
    const button = event.submitter
    if (button && button.name) data.append(button.name, button.value)
    const next = nextTo(form)
    try {
      const [answer, page] = await load('/do', { method: 'POST', body: data })
      if (!answer.ok) return complain(form, textsOf(page, 'result', 'problem', 'way-out') || answer.statusText)
      for (const field of form.elements) if (isKept(field)) sessionStorage.removeItem(keyOf(field))
      if (!document.querySelector(`[${regions}]`)) return location.assign(answer.url) // from the page of an error
      form.reset()
      form.querySelector('[role=alert]')?.remove()
      const box = form.closest('details')
      if (box) box.open = false
      show(page)
      for (const stamp of document.querySelectorAll('[name=page]')) stamp.value = page.querySelector('[name=page]')?.value ?? stamp.value
      say(textsOf(page, 'result', 'problem', 'way-out'), page.getElementById('undo'))
      const after = next()
      const focus = after && after.isConnected ? after : result
      focus.focus({ preventScroll: true })
      focus.scrollIntoView({ block: 'nearest' })
    } catch {
      complain(form, 'atm web is not answering. Send it again once it does: nothing is done twice.')
    } finally {
      delete form.dataset.busy
    }
  })

  const here = new URL(location)
  if (here.searchParams.has('done')) { // the form succeeded
    here.searchParams.delete('done') // so that reloading does not show the result again
    history.replaceState(null, '', here)
  }
  remember(document)
  restore()

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
