import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { pageOf, SiteLinks } from '../../../docs/.vitepress/links.js';
import { sidebarOf } from '../../../docs/.vitepress/navigation.js';
import { linksOf } from '../markdown.js';
import { matching, root } from '../tree.js';

const sources = matching(/^docs\/.*\.md$|^(?:CHANGELOG|CONTRIBUTING)\.md$/);
const pages = sources.map((file) => pageOf(file)?.replace(/\.md$/, ''));

describe('the site', () => {
  it('names every page in its navigation, once, and no other', () => {
    const linked = sidebarOf(root).flatMap(({ items = [] }) => items.map(({ link }) => link));
    expect([...linked].sort()).toEqual(pages.filter((page) => page !== '/').sort());
  });

  it.each(sources)('%s has links that lead to a page or a file of the site', (source) => {
    const links = new SiteLinks(root);
    const dead = linksOf(source)
      .filter((link) => !/\.(?:svg|png)$/.test(link))
      .map((link) => links.hrefOf(join(root, source), link).replace(/(?:\.md)?(?:#.*)?$/, ''))
      .filter((target) => target !== '' && !target.startsWith('/files/') && !pages.includes(target));
    expect(dead).toEqual([]);
  });
});
