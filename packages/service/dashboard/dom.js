/** Elements by id, new ones, and links. Text is only ever text: what locks are called is up to anybody. */

/**
 * @template {Element} [T=HTMLElement]
 * @param {string} id
 * @returns {T}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no #${id}.`);
  return /** @type {T} */ (/** @type {unknown} */ (found));
}

/**
 * What cannot be seen, or turns around what stands beside it, is shown as its code: two names that differ look different.
 * Joiners stay: emoji and some scripts need them.
 * @param {string} text
 */
function visible(text) {
  return text.replaceAll(
    /(?![\n\u200c\u200d])[\p{Cc}\p{Cf}]/gu,
    (letter) => `\\u{${letter.codePointAt(0)?.toString(16)}}`,
  );
}

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {string} [className]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, className = '', ...children) {
  const element = document.createElement(tag);
  if (className !== '') element.className = className;
  element.append(...children.map((child) => (typeof child === 'string' ? visible(child) : child)));
  return element;
}

/**
 * Written only where it differs: what is selected stays selected.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  const seen = visible(text);
  if (element.textContent !== seen) element.textContent = seen;
}

/** `100,000`. @param {number} number */
export function count(number) {
  return String(number).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
}

/** @param {string} key */
export function splitKey(key) {
  const at = key.indexOf('/') + 1;
  return { namespace: key.slice(0, Math.max(at - 1, 0)), start: key.slice(0, at), name: key.slice(at) };
}

/**
 * A key with its namespace set apart.
 * @param {string} key
 */
export function keyElement(key) {
  const { start, name } = splitKey(key);
  return make('span', 'key', make('span', 'muted', start), make('b', '', name));
}

/** The view and what it shows: every view has an address, which can be pasted. */
export function address() {
  const hash = location.hash.startsWith('#/') ? location.hash.slice(2) : '';
  const [view = '', query = ''] = hash.split('?');
  return { view, query: new URLSearchParams(query) };
}

/**
 * @param {string} view
 * @param {Record<string, string>} [values] empty ones are left out
 */
export function addressOf(view, values = {}) {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ''));
  return `#/${view}${query.size > 0 ? `?${query}` : ''}`;
}

/**
 * @param {string} to
 * @param {...(Node | string)} children
 */
export function link(to, ...children) {
  const element = make('a', '', ...children);
  element.href = to;
  return element;
}
