/** The page: what is shown in which state, and who tells whom. */
import { Board } from './board.js';
import { Chart } from './chart.js';
import { Connection } from './connection.js';
import { byId, setText } from './dom.js';
import { EventLog } from './event-log.js';
import { EvictDialog } from './evict.js';
import { LockRows } from './lock-rows.js';
import { key, Refusal, session, setKey } from './service.js';
import { storiesOf } from './stories.js';
import { after, clock, duration, every, forgetStoreTime, noteStoreTime, storeNow } from './time.js';

/** A key may be revoked, and a token expire, while the stream is open. */
const SESSION_MS = 30_000;
const TOAST_MS = 8_000;
/** A service that looks at all locks less often says so. */
const LIVE_MS_MAX = 5_000;
const SLOW = 'Reads of this store cost money: changes by other services, and expiries, are read';

/** @type {HTMLInputElement} */
const search = byId('search');
/** @type {HTMLSelectElement} */
const sort = byId('sort');
/** @type {HTMLInputElement} */
const renewals = byId('renewals');
/** @type {HTMLInputElement} */
const keyInput = byId('key');

const board = new Board();
const chart = new Chart();
const log = new EventLog();
const connection = new Connection({ onState, onEvent });
const dialog = new EvictDialog(toast);
const rows = new LockRows({
  list: byId('locks'),
  more: byId('more'),
  refuge: search,
  onEvict: (row) => dialog.ask(row.lock),
  isAdmin,
});

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
let hideToast = () => {};

/** @param {import('./connection.js').State} state */
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
    if (board.incoming && board.incoming.size > 0) {
      board.complete();
      isTold = true;
    }
    return show('trouble');
  }
  noteStoreTime(data.now);
  knownAtMs = data.now;
  const told = board.put(data, event === 'gone');
  if (told && (event !== 'renewed' || renewals.checked)) {
    for (const { what, text } of storiesOf(told.before, data, event)) log.add(data.now, what, text, data.key);
  }
  if (told) draw();
}

function ready() {
  board.complete();
  if (shown === 'lost' || shown === 'trouble') log.add(Date.now(), 'live', 'again');
  isTold = true;
  show('live');
  rows.askAgain();
  void greet();
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
  if (next !== 'live') dialog.close();
  draw();
}

function draw() {
  if (!isDrawn) return;
  isDrawn = false;
  requestAnimationFrame(() => {
    isDrawn = true;
    const found = board.select(search.value, /** @type {import('./board.js').Order} */ (sort.value));
    rows.show(found);
    setText(byId('notice'), noticeFor(found.length));
    tick();
  });
}

/** @param {number} count */
function noticeFor(count) {
  if (count > 0) return '';
  if (!isTold) return shown === 'connecting' ? 'Reading the locks…' : 'Nothing is known yet.';
  if (board.locks.size > 0) return `Nothing matches “${search.value.trim()}”.`;
  const who = key() === null ? '' : ' that this key may see';
  return `No lock${who} is held. The next one appears here by itself.`;
}

/** Every second, and after what changed. */
function tick() {
  const figures = board.figures(storeNow());
  if (isTold) {
    setText(byId('held'), String(figures.held));
    setText(byId('waiting'), String(figures.waiting));
    setText(byId('contended'), String(figures.contended));
    byId('figures').classList.toggle('contended', figures.waiting > 0);
    setText(byId('longest'), figures.waiting > 0 ? duration(figures.longestMs) : '–');
    chart.note(shown === 'live' ? figures : null);
    chart.draw();
  }
  document.title =
    figures.waiting > 0 && shown === 'live' ? `${figures.waiting} waiting · Holdfast` : 'Holdfast';
  if (shown === 'lost') {
    const leftMs = retryAtMs - performance.now();
    setText(byId('retry'), leftMs > 500 ? `Try now (${Math.round(leftMs / 1000)} s)` : 'Trying…');
  }
  rows.tick();
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

/** What one was shown is not for the next. */
function forget() {
  connection.close();
  board.begin();
  board.complete();
  isTold = false;
  setText(byId('principal'), '');
  byId('events').replaceChildren();
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
  shown === 'forbidden' ? connection.open() : connection.hurry(),
);
addEventListener('online', () => connection.hurry());
search.addEventListener('input', () => {
  log.search(search.value);
  draw();
});
sort.addEventListener('change', draw);
document.addEventListener('keydown', (event) => {
  const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
  if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey || shown === 'login')
    return;
  event.preventDefault();
  search.focus();
});
every(1_000, tick);
every(SESSION_MS, () => {
  if (shown === 'live') void greet();
});
connection.open();
