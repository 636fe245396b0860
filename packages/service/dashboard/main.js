/** The page: its states, and how its parts are connected. */
import { Chart, EventLog } from './activity.js';
import { Board, storiesOf } from './board.js';
import { addressOf, byId, count, make, setText } from './dom.js';
import { LockRows } from './lock-rows.js';
import { Selection } from './selection.js';
import { Connection, key, Refusal, session, setKey } from './service.js';
import { after, clock, duration, every, forgetStoreTime, noteStoreTime, storeNow } from './time.js';
import { listenToKeys, Views } from './views.js';

/** A key may be revoked, and a token expire, while the stream is open. */
const SESSION_MS = 30_000;
const TOAST_MS = 8_000;
/** A service that looks at all locks less often says so. */
const LIVE_MS_MAX = 5_000;
/** To choose from; the address may name any other. */
const NAMESPACES_MAX = 1_000;
const SLOW = 'Reads of this store cost money: changes by other services, and expiries, are read';

/** @type {HTMLInputElement} */
const search = byId('search');
/** @type {HTMLSelectElement} */
const sort = byId('sort');
/** @type {HTMLSelectElement} */
const namespace = byId('namespace');
/** @type {HTMLInputElement} */
const renewals = byId('renewals');
/** @type {HTMLInputElement} */
const keyInput = byId('key');

const board = new Board();
const selection = new Selection(draw);
const chart = new Chart();
const log = new EventLog();
const connection = new Connection({ onState, onEvent });
/** @type {import('./evict.js').EvictDialog | null} */
let dialog = null;
const rows = new LockRows({
  list: byId('locks'),
  more: byId('more'),
  refuge: search,
  onEvict: (row) => evict(row.lock),
  isAdmin,
});
const views = new Views(
  { board, isLive, isTold: () => isTold, draw, toast, evict, isAdmin, failed },
  showList,
);

/** @typedef {'connecting' | 'live' | 'trouble' | 'lost' | 'login' | 'forbidden'} Shown */
/** @type {Readonly<Record<Shown, { status: string, title: string }>>} */
const WORDS = {
  connecting: { status: 'Connecting', title: '' },
  live: { status: 'Live', title: '' },
  trouble: { status: 'Store away', title: 'The store does not answer.' },
  lost: { status: 'Lost', title: 'The connection is lost.' },
  login: { status: 'Logged out', title: '' },
  forbidden: { status: 'Refused', title: 'This API key may not read locks.' },
};
/** @type {Shown} */
let shown = 'connecting';
let isTold = false;
let isDrawn = true;
let retryAtMs = 0;
let knownAtMs = 0;
let pageNumber = 1;
let namespaceNames = '';
let hideToast = () => {};

/** @param {import('./service.js').State} state */
function onState(state) {
  switch (state.kind) {
    case 'connecting':
      return show('connecting');
    case 'reading':
      forgetStoreTime();
      return board.begin();
    case 'lost':
      retryAtMs = performance.now() + state.retryMs;
      if (shown !== 'lost') log.add(Date.now(), 'lost', 'the connection to the service');
      show('lost', state.why);
      return tick();
    case 'refused':
      if (state.status === 403) return show('forbidden', state.why);
      return askForKey(key() === null ? '' : state.why);
  }
}

/**
 * @param {string} event
 * @param {any} data
 */
function onEvent(event, data) {
  if (event === 'ready') return ready();
  if (event === 'trouble') {
    // What the service knew while the store answered is better than nothing.
    if (board.incoming && board.incoming.locks.size > 0) {
      board.complete();
      isTold = true;
      select();
    }
    return show('trouble');
  }
  noteStoreTime(data.now);
  knownAtMs = data.now;
  const told = board.put(data, event === 'gone');
  if (told && (event !== 'renewed' || renewals.checked)) {
    for (const { what, text } of storiesOf(told.before, data, event)) log.add(data.now, what, text, data.key);
  }
  if (!told) return;
  selection.change(told.before, event === 'gone' ? undefined : data);
  draw();
}

function ready() {
  board.complete();
  if (shown === 'lost' || shown === 'trouble') log.add(Date.now(), 'live', 'again');
  isTold = true;
  show('live');
  rows.askAgain();
  void greet();
  void views.page?.refresh();
  select();
}

/** Searches all locks for what is chosen. */
function select() {
  const order = /** @type {import('./selection.js').Order} */ (sort.value);
  selection.choose(board.locks.values(), namespace.value, search.value, order);
  draw();
}

/**
 * @param {Shown} next
 * @param {string} [why]
 */
function show(next, why = '') {
  if (shown === 'live' && next !== 'live') knownAtMs = Date.now();
  shown = next;
  document.body.dataset.state = next;
  const { status, title } = WORDS[next];
  setText(byId('status-text'), status);
  byId('login').hidden = next !== 'login';
  byId('board').hidden = next === 'login';
  // Also to who is refused: another key may do.
  byId('who').hidden = next === 'login';
  byId('logout').hidden = key() === null;
  byId('banner').hidden = title === '';
  byId('retry').hidden = next === 'trouble';
  setText(byId('banner-title'), title);
  const asOf = isTold && next !== 'forbidden' ? `State of ${clock(knownAtMs)}. ` : '';
  byId('banner-text').textContent = title === '' ? '' : `${why} ${asOf}`;
  byId('views').hidden = next === 'login';
  if (next !== 'live') dialog?.dialog.close();
  draw();
}

function draw() {
  if (!isDrawn) return;
  isDrawn = false;
  requestAnimationFrame(() => {
    isDrawn = true;
    offerNamespaces();
    const { found, late } = selection;
    const isAllShown = rows.show(found, pageNumber, listAddress);
    if (!log.draw() || !isAllShown) draw();
    setText(byId('notice'), late ? 'Searching…' : noticeFor(found.length));
    byId('first').hidden = !isTold || board.locks.size > 0;
    views.page?.update?.();
    tick();
  });
}

/** @param {number} found */
function noticeFor(found) {
  if (found > 0) return '';
  if (!isTold) return shown === 'connecting' ? 'Reading the locks…' : 'Nothing is known yet.';
  const words = search.value.trim() || namespace.value;
  if (board.locks.size > 0) return `Nothing matches “${words}”.`;
  const who = key() === null ? '' : ' that this key may see';
  return `No lock${who} is held. The next one appears here by itself.`;
}

/** Every second, and after what changed. */
function tick() {
  const figures = board.figures(storeNow());
  if (isTold) {
    setText(byId('held'), count(figures.held));
    setText(byId('waiting'), count(figures.waiting));
    setText(byId('contended'), count(figures.contended));
    byId('figures').classList.toggle('contended', figures.waiting > 0);
    setText(byId('longest'), figures.waiting > 0 ? duration(figures.longestMs) : '–');
    chart.note(shown === 'live' ? figures : null);
    chart.draw();
  }
  const waiting = figures.waiting > 0 && shown === 'live' ? [`${count(figures.waiting)} waiting`] : [];
  document.title = [...(views.page ? [views.page.title] : waiting), 'Holdfast'].join(' · ');
  if (shown === 'lost') {
    const leftMs = retryAtMs - performance.now();
    setText(byId('retry'), leftMs > 500 ? `Try now (${Math.round(leftMs / 1000)} s)` : 'Trying…');
  }
  if (views.page) views.page.tick?.();
  else rows.tick();
}

/** The list that the address names. @param {URLSearchParams} query */
function showList(query) {
  search.value = query.get('search') ?? '';
  const order = query.get('sort') ?? 'name';
  sort.value = [...sort.options].some(({ value }) => value === order) ? order : 'name';
  offerNamespaces(query.get('namespace') ?? '');
  pageNumber = Math.max(Number.parseInt(query.get('page') ?? '', 10) || 1, 1);
  filterLog();
  select();
}

/** @param {number} page */
function listAddress(page) {
  const order = sort.value === 'name' ? '' : sort.value;
  const what = { namespace: namespace.value, search: search.value, sort: order };
  return addressOf('', { ...what, page: page > 1 ? String(page) : '' });
}

/** What was chosen becomes the address. Every letter of a search is not a step to go back to. @param {boolean} isStep */
function choose(isStep) {
  pageNumber = 1;
  history[isStep ? 'pushState' : 'replaceState'](null, '', listAddress(1));
  filterLog();
  select();
}

function filterLog() {
  log.search(search.value, namespace.value);
}

/** One that is chosen stays, also without locks. @param {string} [chosen] */
function offerNamespaces(chosen = namespace.value) {
  const { namespaces } = board.known;
  const names = [...new Set([...[...namespaces.keys()].slice(0, NAMESPACES_MAX), chosen])]
    .filter(Boolean)
    .sort();
  if (names.join('/') !== namespaceNames) {
    namespaceNames = names.join('/');
    namespace.replaceChildren(...['', ...names].map((name) => option(name)));
    namespace.value = chosen;
  }
  if (namespace.value !== chosen) namespace.value = chosen;
}

/** @param {string} name */
function option(name) {
  const element = make('option', '', name || 'All namespaces');
  element.value = name;
  return element;
}

function isLive() {
  return shown === 'live';
}

/**
 * Asks first. @param {import('./board.js').Lock} lock @param {import('./board.js').Holder} [holder]
 */
async function evict(lock, holder) {
  try {
    const [{ EvictDialog }] = await Promise.all([import('./evict.js'), views.fetchStyles()]);
    dialog ??= new EvictDialog(toast);
    if (isLive()) dialog.ask(lock, holder);
  } catch (error) {
    toast(String(error));
  }
}

/**
 * What a page asked for was not answered.
 * @param {unknown} error
 * @param {Element} place
 */
function failed(error, place) {
  if (error instanceof Refusal && error.status === 401) return askForKey(error.message);
  setText(place, error instanceof Refusal ? error.message : 'No answer.');
}

/** @param {string} why */
function askForKey(why) {
  setKey(null);
  forget();
  show('login');
  byId('login-error').textContent = why;
  keyInput.setAttribute('aria-invalid', String(why !== ''));
  keyInput.focus();
}

/** The next user must not see this user's locks. */
function forget() {
  connection.close();
  board.begin();
  board.complete();
  select();
  isTold = false;
  setText(byId('principal'), '');
  log.clear();
  chart.samples = [];
  chart.draw();
  for (const id of ['held', 'waiting', 'contended', 'longest']) setText(byId(id), '–');
}

async function greet() {
  try {
    const { principal, roundMs } = await session('');
    setText(byId('principal'), principal);
    const isSlow = roundMs > LIVE_MS_MAX;
    byId('pace').hidden = !isSlow;
    if (isSlow) setText(byId('pace'), `${SLOW} every ${Math.round(roundMs / 1000)} s.`);
  } catch (error) {
    // Any other trouble shows at the stream.
    if (error instanceof Refusal && error.status === 401) askForKey(error.message);
  }
}

/** @param {string} namespace */
async function isAdmin(namespace) {
  try {
    return (await session(namespace)).admin;
  } catch (error) {
    if (error instanceof Refusal && error.status === 401) askForKey(error.message);
    return false;
  }
}

/** @param {string} text */
function toast(text) {
  setText(byId('toast'), text);
  hideToast();
  hideToast = after(TOAST_MS, () => setText(byId('toast'), ''));
}

byId('login-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const text = keyInput.value.trim();
  // No header can carry anything else.
  if (!/^[!-~]+$/.test(text)) return askForKey('An API key has no spaces and only plain letters.');
  keyInput.value = '';
  setKey(text);
  connection.open();
});
byId('logout').addEventListener('click', () => askForKey(''));
byId('retry').addEventListener('click', () =>
  shown === 'forbidden' ? connection.open() : connection.wake(),
);
addEventListener('online', () => connection.wake());
search.addEventListener('input', () => choose(false));
sort.addEventListener('change', () => choose(true));
namespace.addEventListener('change', () => choose(true));
for (const way of document.querySelectorAll('.skip, #to-events')) {
  way.addEventListener('click', (event) => {
    // The address stays that of the view.
    event.preventDefault();
    const target = views.page?.heading ?? byId(way.id === 'to-events' ? 'events-title' : 'locks-title');
    target.scrollIntoView();
    target.focus({ preventScroll: true });
  });
}
const here = new URL('.', location.href).href;
setText(byId('first-cli'), `holdfast run first --store ${here.slice(0, -1)} -- sleep 60`);
setText(
  byId('first-curl'),
  `curl -H 'content-type: application/json' ${here}v2/locks/demo/first/acquire -d '{"ttl":"60s"}'`,
);
listenToKeys(views, search, () => shown === 'login');
every(1_000, tick);
views.open();
every(SESSION_MS, () => {
  if (shown === 'live') void greet();
});
connection.open();
