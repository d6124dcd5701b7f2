/** How many slots a cluster has. */
export const slotCount = 16_384;

/** The slot of a hash tag: CRC16 (XMODEM) of its bytes, as every cluster computes it. Tags here are ASCII. */
export function tagSlot(tag: string): number {
  let crc = 0;
  for (let i = 0; i < tag.length; i++) {
    crc ^= tag.charCodeAt(i) << 8;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
  }
  return crc % slotCount;
}
