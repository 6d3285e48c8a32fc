//! Cases for the format `byte` (RFC 4648, section 4). The URL-safe alphabet and missing padding are invalid.

use super::Cases;
use mcp_exact_wire::Format;

/// Valid and invalid texts for the format `byte`.
#[rustfmt::skip]
pub(crate) static CASES: Cases = Cases {
    format: Format::Byte,
    typical_characters: &['A', 'Q', 'g', 'w', 'E', 'I', 'M', 'U', 'Y', 'c', 'k', 'o', 's', '0', '4', '8', '+', '/', '=', 'z', 'Z', '9', 'a'],
    accepted: &[
        // Section 10
        "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy",
        // Edges of the alphabet
        "AAAA", "ZZZZ", "aaaa", "zzzz", "0000", "9999", "++++", "////", "+/+/", "AZaz", "09+/", "MNmn", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        // Last groups
        "AA==", "AQ==", "Ag==", "Aw==", "/w==", "+A==", "9g==", "zQ==", "AAA=", "AAE=", "AAI=", "AAM=", "AAQ=", "AAU=", "AAY=", "AAc=", "AAg=", "AAk=", "AAo=", "AAs=", "AAw=", "AA0=", "AA4=", "AA8=", "//8=", "++A=",
        "////AA==", "////AAA=", "AAAAAAAA", "AAAAAAAAAA==", "AAAAAAAAAAA=", "AAAAAAAAAAAA", "SGVsbG8=", "SGVsbG8h", "SGVsbG8sIHdvcmxkIQ==",
        // Data of some sense
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=",
        "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "JVBERi0xLjQK", "eyJhIjoxfQ==", "w6k=", "8J+YgA==", "AAECAwQFBgcICQoLDA0ODw==",
        "MTIzNDU2Nzg5MA==", "VGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZy4=", "3q2+7w==", "yv66vg==", "////////////////", "++++++++++++++++",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==",
    ],
    rejected: &[
        // Length
        "A", "AA", "AAA", "AAAAA", "AAAAAA", "AAAAAAA", "Zg", "Zm8", "Zg=", "Zm8==", "Zm9v=", "Zm9v==", "Zm9v====", "Zm9vY", "Zm9vYg", "Zm9vYg=", "Zm9vYmE", "Zm9vYmE==",
        // Padding
        "=", "==", "===", "====", "=====", "A=", "A==", "A===", "=A==", "==A=", "===A", "=AAA", "A=AA", "AA=A", "AA=A=", "=AA=", "A=A=", "AAA==", "AA===", "AA====", "AAAA=", "AAAA==", "AAAA===", "AAAA====", "AAAA=AAA", "AAA=AAAA", "AA==AAAA", "AA==AA==", "AAA=AAA=", "AA==AAA=", "Zg==Zg==", "Zm9vYg===", "=Zg=", "==Zg", "AAAA==AA", "AAAAA===",
        // Bits that padding drops
        "AB==", "AC==", "AP==", "AR==", "Af==", "Ah==", "Av==", "Ax==", "A/==", "A+==", "A9==", "Az==", "Zh==", "Zn==", "AAB=", "AAC=", "AAD=", "AAF=", "AAH=", "AAN=", "AA/=", "AA+=", "AAz=", "AA9=", "AAa=", "AAb=", "AA1=", "AA7=", "Zm9=", "Zm+=", "//9=", "/x==", "//+=", "Zm9vYh==", "Zm9vYmF=",
        // Characters
        "AAA-", "AAA_", "-_-_", "AA-=", "A_==", "AAA.", "AAA,", "AAA*", "AAA:", "AAA;", "AAA@", "AAA[", "AAA`", "AAA{", "AAA!", "AAA\"", "AAA#", "AAA%", "AAA&", "AAA~", "AAA\x7f", "AAA\0", "\0AAA", "AAA?", "AAA<", "AAA>", "AAA\\", "AAA^", "AAA|", "AAA}", "AAA)", "AAA'", "AAA$",
        // White space
        " ", "    ", "\n", "AAAA\n", "AAAA\r\n", "AAAA ", " AAAA", "AA AA", "AAA ", "AA\nA", "AA==\n", "AA= =", "AA ==", "AAAA\nAAA", "\tAAA", "AAAA\r\n\r\n", "AAAA    ", "AA\u{a0}", "\u{feff}A",
        // Non-ASCII, padded to four bytes where that is possible
        "é", "éé", "AAé", "éAA", "AéA", "😀", "A€", "€A", "AA\u{80}", "ÁÁ", "Ａ=", "＝＝", "AA＝", "\u{212a}A", "ſAA", "ſſ", "AAAA😀", "\u{e1}\u{e1}",
        // Other dresses
        "data:;base64,AAAA", "\\u0041", "AA%3D%3D", "AAA%", "&lt;", "~~~~", "....", "----", "____",
    ],
};
