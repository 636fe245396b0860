/** Evicting asks first. What is confirmed is what was shown: who came to hold the lock meanwhile is left alone. */
import { make, setText } from './dom.js';
import { evict, Refusal } from './service.js';

/**
 * @typedef {import('./board.js').Lock} Lock
 * @typedef {import('./board.js').Holder} Holder
 */

const CONSEQUENCES =
  'Their leases end at once and the next waiter may begin. What they are doing does not stop by itself: only a fence that checks tokens keeps their late writes out.';

export class EvictDialog {
  /** @param {(text: string) => void} onDone */
  constructor(onDone) {
    this.onDone = onDone;
    this.title = make('h2');
    this.holders = make('ul');
    this.reason = make('input');
    this.reason.maxLength = 200;
    this.reason.autocomplete = 'off';
    this.error = make('p');
    this.error.role = 'alert';
    const text = make('p', '', CONSEQUENCES);
    const no = make('button', '', 'Keep');
    no.type = 'button';
    no.autofocus = true;
    this.yes = make('button', 'danger', 'Evict');
    this.yes.type = 'button';
    this.dialog = make(
      'dialog',
      '',
      ...[this.title, text, this.holders],
      make('label', '', 'Reason, for them and for the audit log', this.reason),
      ...[this.error, make('div', 'buttons', no, this.yes)],
    );
    const parts = {
      evict: this.dialog,
      'evict-title': this.title,
      'evict-text': text,
      'evict-error': this.error,
    };
    for (const [id, part] of Object.entries({ ...parts, 'evict-no': no, 'evict-yes': this.yes }))
      part.id = id;
    this.dialog.setAttribute('aria-labelledby', 'evict-title');
    this.dialog.setAttribute('aria-describedby', 'evict-text');
    document.body.append(this.dialog);
    /** @type {{ key: string, fromToken: number, upToToken: number } | null} */
    this.asked = null;
    no.addEventListener('click', () => this.dialog.close());
    this.yes.addEventListener('click', () => this.confirm());
    this.dialog.addEventListener('close', () => {
      this.asked = null;
    });
  }

  /**
   * @param {Lock} lock
   * @param {Holder} [holder] only this one
   */
  ask(lock, holder) {
    const { key } = lock;
    const holders = holder ? [holder] : lock.holders;
    const hidden = holder ? 0 : lock.holding - holders.length;
    const upToToken = hidden > 0 ? lock.token : Math.max(...holders.map(({ token }) => token));
    this.asked = { key, fromToken: holder?.token ?? 0, upToToken };
    setText(this.title, holder ? `Evict ${holder.owner} from ${key}?` : `Evict who holds ${key}?`);
    const lines = holders.map(({ owner, token }) => make('li', '', make('b', '', owner), ` token ${token}`));
    if (hidden > 0) lines.push(make('li', '', `and ${hidden} more`));
    this.holders.replaceChildren(...lines);
    setText(this.error, '');
    this.reason.value = '';
    this.yes.disabled = false;
    this.dialog.showModal();
  }

  async confirm() {
    const { asked } = this;
    if (!asked) return;
    this.yes.disabled = true;
    setText(this.error, '');
    try {
      const { key, fromToken, upToToken } = asked;
      const count = await evict(key, fromToken, upToToken, this.reason.value.trim() || null);
      if (this.asked === asked) this.dialog.close();
      this.onDone(count > 0 ? `Evicted from ${key}: ${count}.` : `Nobody was left to evict from ${key}.`);
    } catch (error) {
      if (this.asked === asked) setText(this.error, wordsFor(error));
      else this.onDone(`${asked.key}: ${wordsFor(error)}`);
    } finally {
      if (this.asked === asked) this.yes.disabled = false;
    }
  }
}

/** @param {unknown} error */
function wordsFor(error) {
  if (error instanceof Refusal && error.status < 500) return `Not evicted. ${error.message}`;
  return 'No answer, so the outcome is unknown. Evicting again is safe.';
}
