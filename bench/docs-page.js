/** Puts what was measured into a page of the docs, between its two marks, and leaves the rest of the page alone. */
import { readFile, writeFile } from 'node:fs/promises';
import { SERVERS_READING, serversText } from './page-text.js';
import { markdownOf } from './table.js';

const BEGIN = '<!-- measured: begin -->';
const END = '<!-- measured: end -->';

/** @param {string} file @param {import('./types.d.ts').Report} report */
export async function updatePage(file, report) {
  const page = await readFile(file, 'utf8');
  const from = page.indexOf(BEGIN);
  const to = page.indexOf(END);
  if (from === -1 || to < from) throw new Error(`${file} has no place for the figures: ${BEGIN} … ${END}`);
  const { machine, versions, sizes } = report;
  const { node, ...packages } = versions;
  const names = Object.entries(packages).map(([name, version]) => `${name} ${version}`);
  const where =
    `Node ${node} on ${machine.processors} cores (${machine.processor}), load ${machine.loadBefore} before the run and up to ${machine.loadHighest} during it; ` +
    `medians of ${sizes.repetitions}. ${names.join(', ')}.`;
  const parts = [BEGIN, where, serversText(report), markdownOf(report), SERVERS_READING].map((part) =>
    part.trim(),
  );
  await writeFile(file, `${page.slice(0, from)}${parts.join('\n\n')}\n\n${page.slice(to)}`);
}
