/**
 * The option `layout` of a store: the records of other software. A program has those layouts that it imports from
 * `holdfast/STORE/layouts`; a store itself knows none, so that others do not load them. A URL gives the name of one.
 */
import { InvalidArgumentError } from '../../protocol/index.js';
import { isObject } from '../../protocol/is-object.js';

export interface NamedLayout {
  /** The part of the library that it belongs to. */
  readonly store: string;
  readonly name: string;
}

/** `L` has the part of a layout that its store needs, and users do not see. Undefined without a layout. */
export function checkLayout<L extends NamedLayout>(
  layout: Pick<L, 'store'> | undefined,
  store: L['store'],
): L | undefined {
  if (layout === undefined) return undefined;
  if (isObject(layout) && layout.store === store) return layout as unknown as L;
  throw new InvalidArgumentError(`layout has to be one that holdfast/${store}/layouts exports.`);
}

/** Undefined without a name. */
export function layoutNamed<L extends NamedLayout>(
  layouts: Readonly<Record<string, L>>,
  name: string | undefined,
  title: string,
): L | undefined {
  if (name === undefined) return undefined;
  const all = Object.values(layouts);
  const layout = all.find((one) => one.name === name);
  if (layout) return layout;
  throw new InvalidArgumentError(
    `There is no layout "${name}" for ${title}. Layouts: ${all.map((one) => one.name).join(', ')}.`,
  );
}
