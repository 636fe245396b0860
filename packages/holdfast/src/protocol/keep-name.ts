/** The names of errors as texts, because minifiers rename classes. Node prints the name of the class too where it differs. */
export function keepName(type: { readonly prototype: Error }, name: string): void {
  type.prototype.name = name;
  Object.defineProperty(type, 'name', { value: name });
}
