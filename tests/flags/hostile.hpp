// SPDX-License-Identifier: MIT
// Macros that headers of others define: Qt, windows.h and what it includes, X11, termios, and the switches by which a
// program configures Vulkan and nlohmann/json for itself. Every header of the library is compiled after these.
#pragma once

// Qt without QT_NO_KEYWORDS
#define emit
#define slots
#define signals public
#define foreach for
#define forever for (;;)

// windows.h without NOMINMAX
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define near
#define far
#define NEAR
#define FAR
#define small char
#define hyper long long
#define interface struct
#define pascal
#define cdecl
#define IN
#define OUT
#define OPTIONAL
#define CONST const
#define VOID void
#define CALLBACK
#define STRICT 1
#define ERROR 0
#define NO_ERROR 0
#define DELETE 0x10000L
#define IGNORE 0
#define INFINITE 0xFFFFFFFF
#define TRUE 1
#define FALSE 0
#define Yield()
#define GetObject GetObjectA
#define GetMessage GetMessageA
#define CreateFile CreateFileA
#define DrawText DrawTextA

// X11/X.h, Xlib.h
#define Bool int
#define Status int
#define True 1
#define False 0
#define None 0L
#define Success 0
#define Always 2
#define Above 0
#define Below 1
#define Complex 0
#define Unsorted 0
#define CursorShape 0

// termios.h, gettext, GNU modes
#define ECHO 0000010
#define N_(text) text
#define unix 1
#define linux 1

// Vulkan and nlohmann/json as another part of the program wants them
#define VULKAN_HPP_NO_EXCEPTIONS
#define VULKAN_HPP_NO_SMART_HANDLE
#define VULKAN_HPP_DISPATCH_LOADER_DYNAMIC 1
#define VK_NO_PROTOTYPES
#define JSON_USE_IMPLICIT_CONVERSIONS 0
#define JSON_DIAGNOSTICS 1
