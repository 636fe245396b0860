/**
 * The frames of the live view as one SVG that moves: a strip of frames, shown one after the other. A line that several
 * frames share is drawn once. Without motion, for those who ask for none, it shows the frame of the first takeover.
 */
const CHARACTER = { width: 7.83, height: 19 };
const MARGIN = 14;
const BAR = 26;
/** How long the last frame stays, before it begins again. */
const LAST_MS = 3_000;
/** Bold, dim and the foreground colours that the demo uses. */
const CLASSES = new Map([
  ['1', 'b'],
  ['2', 'd'],
  ['31', 'c1'],
  ['32', 'c2'],
  ['33', 'c3'],
  ['34', 'c4'],
  ['35', 'c5'],
  ['36', 'c6'],
]);
const STYLE = `text{font:13px ui-monospace,'SFMono-Regular',Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d0d7de;white-space:pre}
.b{font-weight:600;fill:#f0f6fc}.d{fill:#8b949e}.c1{fill:#ff7b72}.c2{fill:#56d364}.c3{fill:#e3b341}.c4{fill:#79c0ff}.c5{fill:#d2a8ff}.c6{fill:#76e3ea}`;

export class Recording {
  /** @type {{ atMs: number, lines: readonly string[] }[]} */
  #frames = [];

  /**
   * @param {number} atMs
   * @param {readonly string[]} lines with colours
   */
  add(atMs, lines) {
    this.#frames.push({ atMs, lines });
  }

  /** @param {{ title: string, columns: number, rows: number }} view */
  svg({ title, columns, rows }) {
    const width = Math.round(columns * CHARACTER.width + 2 * MARGIN);
    const height = rows * CHARACTER.height + BAR + MARGIN;
    const frames = this.#frames;
    const first = frames[0]?.atMs ?? 0;
    const totalMs = (frames.at(-1)?.atMs ?? 0) - first + LAST_MS;
    const share = (/** @type {number} */ atMs) => `${(((atMs - first) / totalMs) * 100).toFixed(2)}%`;
    const steps = frames.map(({ atMs }, at) => `${share(atMs)}{transform:translateX(-${at * width}px)}`);
    const still = Math.max(
      0,
      frames.findIndex(({ lines }) => lines.some((line) => line.includes('took over'))),
    );
    /** @type {Map<string, string>} */
    const lines = new Map();
    const strip = frames.map((frame, at) => {
      const uses = frame.lines.flatMap((line, row) => {
        if (line.trim() === '') return [];
        const id = lines.get(line) ?? `l${lines.size}`;
        lines.set(line, id);
        return [`<use href="#${id}" x="${at * width}" y="${row * CHARACTER.height}"/>`];
      });
      return uses.join('');
    });
    const drawn = [...lines].map(([line, id]) => `<text id="${id}">${spans(line)}</text>`);
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}">
<title>${title}</title>
<style>${STYLE}
.strip{animation:play ${(totalMs / 1_000).toFixed(1)}s steps(1) infinite}
@keyframes play{${steps.join('')}}
@media (prefers-reduced-motion:reduce){.strip{animation:none;transform:translateX(-${still * width}px)}}</style>
<defs>${drawn.join('\n')}</defs>
<rect width="${width}" height="${height}" rx="8" fill="#0d1117" stroke="#30363d"/>
<circle cx="18" cy="15" r="5" fill="#ff5f57"/><circle cx="35" cy="15" r="5" fill="#febc2e"/><circle cx="52" cy="15" r="5" fill="#28c840"/>
<clipPath id="screen"><rect width="${width - 2 * MARGIN}" height="${height - BAR}"/></clipPath>
<g clip-path="url(#screen)" transform="translate(${MARGIN} ${BAR})"><g class="strip"><g transform="translate(0 13)">${strip.join('\n')}</g></g></g>
</svg>\n`;
  }
}

/** Text with colours as parts of an SVG text. @param {string} line */
function spans(line) {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with the escape character.
  const parts = line.split(/\x1b\[([\d;]*)m/);
  let names = '';
  return parts
    .map((part, at) => {
      if (at % 2 === 1) {
        const codes = part.split(';').flatMap((code) => CLASSES.get(code) ?? []);
        names = codes.join(' ');
        return '';
      }
      const text = part.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
      if (names === '' || text === '') return text;
      return `<tspan class="${names}">${text}</tspan>`;
    })
    .join('');
}
