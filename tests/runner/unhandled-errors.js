// @ts-check
/** A reporter that writes how many errors belong to no test: a dead worker, a rejection that nobody handled. */
import { writeFileSync } from 'node:fs';

export default class UnhandledErrors {
  /** @param {unknown} _modules @param {readonly unknown[]} errors */
  onTestRunEnd(_modules, errors) {
    const file = process.env.HOLDFAST_UNHANDLED_FILE;
    if (file) writeFileSync(file, String(errors.length));
  }
}
