// What the package offers. Positions are bytes of a `Buffer`, and no function changes the text that it reads.
export type { ByteRange } from './byte-range.ts';
export { foldKey } from './fold-key.ts';
export { FoundMembers, hasMember, type Members, type MembersWithShortKeys, memberIndex } from './object-members.ts';
export { backslash, closeBrace, comma, JsonReader, openBrace, openBracket, quote, type ScanFault } from './reader.ts';
export { maxScalarBytes, parseBounded, parseOwn, readScalar, type Scalar } from './scalar.ts';
export {
  copyOf,
  defaultLimits,
  type MessagesOutcome,
  type ScanLimits,
  type Scanned,
  type ScannedValue,
  type ScanOutcome,
  SteppedScan,
  scanJson,
  scanList,
  scanMember,
  scanMessages,
  scanObject,
  scanShortKeys,
} from './scan.ts';
export { countScansWith, type ScanMeter } from './scan-meter.ts';
export { type InternedTexts, internTexts } from './short-texts.ts';
export { SoughtKey } from './sought-key.ts';
export {
  errorCodeIn,
  findRange,
  objectAt,
  type Replacement,
  replaceParts,
  scalarAt,
  sortByStart,
  splice,
  spliceCancelledId,
  spliceId,
  stringAt,
  valueAt,
} from './splice.ts';
export { numberEnd, spaceEnd } from './token-end.ts';
