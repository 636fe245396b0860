/** The site as `npm run site` builds it, in a folder of its own, served as plain files. */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, posix } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../repository/tree.js';
import { atTheEnd, freshFolder } from '../scene.js';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
  '.txt': 'text/plain',
};

export async function buildSite(): Promise<string> {
  const folder = freshFolder();
  const vitepress = join(root, 'node_modules/vitepress/bin/vitepress.js');
  await promisify(execFile)(process.execPath, [vitepress, 'build', 'docs', '--outDir', folder], {
    cwd: root,
  });
  return folder;
}

/** All pages of the site, as paths from its root. */
export function pagesOf(folder: string): readonly string[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return files.filter((file) => file.endsWith('.html') && !file.startsWith('files')).sort();
}

/** Links of a page that lead to nothing: no such file, or no such heading. */
export function deadLinksOf(folder: string, page: string): readonly string[] {
  const html = readFileSync(join(folder, page), 'utf8');
  const links = [...html.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, link = '']) =>
    link.replaceAll('&amp;', '&'),
  );
  return links.filter((link) => {
    if (link === '' || /^[a-z]+:/.test(link)) return false;
    const [path = '', anchor = ''] = link.split('#');
    const from = path === '' ? page : posix.join(path.startsWith('/') ? '' : posix.dirname(page), path);
    const file = join(folder, from.endsWith('/') ? `${from}index.html` : from);
    if (!existsSync(file)) return true;
    return anchor !== '' && !readFileSync(file, 'utf8').includes(`id="${decodeURIComponent(anchor)}"`);
  });
}

/** Its address, without a slash at the end. */
export async function serveFiles(folder: string): Promise<string> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://site');
    const file = join(folder, pathname.endsWith('/') ? `${pathname}index.html` : pathname);
    const found = existsSync(file);
    response.writeHead(found ? 200 : 404, {
      'content-type': TYPES[extname(file)] ?? 'application/octet-stream',
    });
    response.end(found ? readFileSync(file) : '');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atTheEnd(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
